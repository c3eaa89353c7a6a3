"""What training says on the Loop page and in the rail."""

from apps.core.models import Project
from apps.core.permissions import Actor
from apps.core.registries import loop_stages
from apps.feedback.models import Family, Verifier
from apps.training import services
from apps.training.models import TrainingRun
from apps.training.overview import nav_count, personal_tasks, training_stage
from tests.apps.training.conftest import Workers


def test_the_stage_stands_between_tasks_and_versions() -> None:
    names = [stage.name for stage in sorted(loop_stages, key=lambda stage: stage.order)]

    assert names[-4:] == ["Tasks", "Training", "Versions", "Canary"]


def test_the_stage_says_which_step_runs(project: Project, run: TrainingRun, workers: Workers) -> None:
    workers.roll()
    workers.train()

    stage = training_stage(project)

    assert (stage["value"], stage["note"]) == ("1", "step 2 of 3")
    assert stage["url"] == run.get_absolute_url()
    assert nav_count(project) == "1 live"


def test_without_runs_it_says_so(project: Project) -> None:
    assert training_stage(project)["note"] == "no run yet"
    assert nav_count(project) == ""
    assert personal_tasks(project) == []


def test_a_failed_run_needs_a_person(project: Project, run: TrainingRun, workers: Workers) -> None:
    workers.fail(workers.first("rollout_batch"), "the engine is gone")

    (row,) = personal_tasks(project)

    assert row["what"] == "Training run “Invoices” failed"
    assert "the engine is gone" in row["why"]
    assert training_stage(project)["tone"] == "fail"


def test_a_run_that_someone_paused_needs_nobody(project: Project, run: TrainingRun, actor: Actor) -> None:
    services.run_pause(run=run, by=actor)

    assert personal_tasks(project) == []


def test_a_refused_verifier_needs_a_person(project: Project, family: Family) -> None:
    Verifier.objects.update(admission="refused", reasons=["“empty object” must be failed and was passed."])

    (row,) = personal_tasks(project)

    assert row["what"] == "Verifier invoice_fields v1 was refused"
    assert "empty object" in row["why"]
