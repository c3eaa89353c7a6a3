"""Pages of feedback, below ``/failures/``."""

from django.urls import path

from apps.feedback import views
from apps.feedback.views import label

app_name = "feedback"
urlpatterns = [
    path("", views.inbox, name="inbox"),
    path("cases/<int:pk>/", views.case, name="case"),
    path("cases/<int:pk>/asset/", views.case_asset, name="case_asset"),
    path("label/", label.label, name="label"),
    path("label/next/", label.label_next, name="label_next"),
    path("label/undo/", label.label_undo, name="label_undo"),
    path("label/<int:pk>/", label.label_save, name="label_save"),
    path("label/<int:pk>/skip/", label.label_skip, name="label_skip"),
    path("label/<int:pk>/lease/", label.label_lease, name="label_lease"),
    path("label/<int:pk>/check/", label.label_check, name="label_check"),
    path("captures/", views.captures, name="captures"),
    path("tasks/", views.assets, name="assets"),
    path("tasks/<int:pk>/", views.asset, name="asset"),
    path("tasks/<int:pk>/retire/", views.asset_retire, name="asset_retire"),
    path("datasets/", views.datasets, name="datasets"),
    path("datasets/new/", views.dataset_create, name="dataset_create"),
    path("datasets/<int:pk>/", views.dataset, name="dataset"),
    path("datasets/<int:pk>/export/", views.dataset_export, name="dataset_export"),
    path("rules/", views.rules, name="rules"),
]
