"""Pages of core: health, account, settings."""

from django.contrib.auth import views as auth_views
from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.urls import path

from apps.core.views import account, keys, operations, project

app_name = "core"


def healthz(request: HttpRequest) -> JsonResponse:
    """Answers 200 while the process serves requests and reaches its database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return JsonResponse({"status": "ok"})


urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("login/", account.LoginView.as_view(), name="login"),
    path("logout/", auth_views.LogoutView.as_view(), name="logout"),
    path("account/theme/", account.theme, name="theme"),
    path("account/password/", account.PasswordView.as_view(), name="password"),
    path("projects/new/", account.project_new, name="project_new"),
    path("projects/switch/", account.project_switch, name="project_switch"),
    path("settings/", project.settings, name="settings"),
    path("settings/people/", project.people, name="people"),
    path("settings/people/<int:pk>/role/", project.member_change, name="member_change"),
    path("settings/people/<int:pk>/remove/", project.member_remove, name="member_remove"),
    path("settings/keys/", keys.keys, name="keys"),
    path("settings/keys/<int:pk>/revoke/", keys.key_revoke, name="key_revoke"),
    path("settings/appearance/", account.appearance, name="appearance"),
    path("settings/work/", operations.work, name="work"),
    path("settings/work/<int:pk>/", operations.unit, name="unit"),
    path("settings/work/<int:pk>/retry/", operations.unit_retry_view, name="unit_retry"),
    path("settings/work/<int:pk>/cancel/", operations.unit_cancel_view, name="unit_cancel"),
    path("settings/audit/", operations.audit, name="audit"),
]
