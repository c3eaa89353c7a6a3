"""Pages of training, below ``/training/``."""

from django.urls import path

from apps.training.views import families, packs, runs, trajectories, verifier_editor, verifiers

app_name = "training"
urlpatterns = [
    path("", runs.run_list, name="runs"),
    path("runs/new/", runs.run_new, name="run_new"),
    path("runs/<int:pk>/", runs.run_page, name="run"),
    path("runs/<int:pk>/trajectories/", trajectories.trajectory_list, name="trajectories"),
    path("runs/<int:pk>/<str:verb>/", runs.run_act, name="run_act"),
    path("trajectories/<int:pk>/", trajectories.trajectory_page, name="trajectory"),
    path("trajectories/<int:pk>/exploit/", trajectories.trajectory_exploit, name="trajectory_exploit"),
    path("families/", families.family_list, name="families"),
    path("families/<int:pk>/", families.family_page, name="family"),
    path("families/<int:pk>/import/", families.family_import, name="family_import"),
    path("packs/", packs.pack_list, name="packs"),
    path("packs/check/", packs.packs_check, name="packs_check"),
    path("packs/add/", packs.packs_add, name="packs_add"),
    path("packs/<slug:name>/", packs.pack_family_page, name="pack_family"),
    path("entries/<int:pk>/", verifiers.entry_page, name="entry"),
    path("entries/<int:pk>/retire/", verifiers.entry_retire, name="entry_retire"),
    path("verifiers/", verifiers.verifier_list, name="verifiers"),
    path("verifiers/new/", verifier_editor.verifier_new, name="verifier_new"),
    path("verifiers/trials/<int:pk>/", verifier_editor.verifier_trial, name="verifier_trial"),
    path("verifiers/agreements/<int:pk>/", verifiers.agreement_page, name="verifier_agreement"),
    path("verifiers/<int:pk>/edit/", verifier_editor.verifier_edit, name="verifier_edit"),
    path("verifiers/<int:pk>/measure/", verifiers.verifier_measure, name="verifier_measure"),
    path("verifiers/<int:pk>/use/", verifiers.verifier_use, name="verifier_use"),
    path("verifiers/<int:pk>/", verifiers.verifier_page, name="verifier"),
    path("verifiers/<int:pk>/check/", verifiers.verifier_check, name="verifier_check"),
    path("verifiers/<int:pk>/entries/", verifiers.entry_add, name="entry_add"),
]
