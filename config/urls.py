"""URLs of the web application; ``/v1`` (the gateway) is mounted before Django in ``asgi.py``."""

from django.urls import include, path

from apps.core.api import api, mount_routers

mount_routers()

handler400 = "apps.core.errors.bad_request"
handler403 = "apps.core.errors.permission_denied"
handler404 = "apps.core.errors.not_found"
handler500 = "apps.core.errors.server_error"

urlpatterns = [
    path("", include("apps.loop.urls")),
    path("", include("apps.core.urls")),
    path("failures/", include("apps.feedback.urls")),
    path("evals/", include("apps.evals.urls")),
    path("training/", include("apps.training.urls")),
    path("versions/", include("apps.versions.urls")),
    path("api/v1/", api.urls),
]
