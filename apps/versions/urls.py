from django.urls import path

from apps.versions.views import endpoints, registry, releases, routing

app_name = "versions"
urlpatterns = [
    path("", registry.version_list, name="list"),
    path("<int:pk>/", registry.version_detail, name="detail"),
    path("<int:pk>/release/", releases.release_start, name="release_start"),
    path("<int:pk>/promote/", registry.promote, name="promote"),
    path("roll-back/", registry.roll_back, name="roll_back"),
    path("releases/<int:pk>/", releases.release_detail, name="release"),
    path("releases/<int:pk>/pause/", releases.release_pause, name="release_pause"),
    path("releases/<int:pk>/resume/", releases.release_resume, name="release_resume"),
    path("releases/<int:pk>/abort/", releases.release_abort, name="release_abort"),
    path("releases/<int:pk>/seen/", releases.release_acknowledge, name="release_acknowledge"),
    path("routing/", routing.routing, name="routing"),
    path("routing/<int:number>/", routing.revision, name="revision"),
    path("endpoints/", endpoints.endpoint_list, name="endpoints"),
    path("endpoints/new/", endpoints.endpoint_create, name="endpoint_create"),
    path("endpoints/<int:pk>/edit/", endpoints.endpoint_edit, name="endpoint_edit"),
    path("endpoints/<int:pk>/test/", endpoints.endpoint_test, name="endpoint_test"),
    path("endpoints/<int:pk>/retire/", endpoints.endpoint_retire, name="endpoint_retire"),
]
