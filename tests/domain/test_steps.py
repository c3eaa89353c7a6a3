from domain.contracts import FileChange, SandboxStep, Step
from domain.steps import BAD_ACTION, did_nothing, step_checks


def test_steps_without_a_sandbox_say_nothing() -> None:
    assert step_checks([Step(action="42")]) == ()


def test_faults_halve_their_layer_each() -> None:
    format_check, process = step_checks(_steps("ok", BAD_ACTION, BAD_ACTION, "refused", "nonzero"))

    assert (format_check.role, format_check.score) == ("format", 0.25)
    assert (process.role, process.score) == ("process", 0.5)
    assert process.reason == "1 steps were refused or ended."


def test_a_failing_test_run_is_no_fault() -> None:
    assert [check.score for check in step_checks(_steps("nonzero", "ok"))] == [1.0, 1.0]


def test_doing_nothing_is_neither_saying_nor_changing_anything() -> None:
    change = FileChange(path="a", change="added")
    changed = [Step(sandbox=SandboxStep(command="x", changes=(change,)))]

    assert did_nothing("  ", _steps("ok"))
    assert not did_nothing("42", _steps("ok"))
    assert not did_nothing("", changed)


def _steps(*statuses: str) -> list[Step]:
    return [Step(sandbox=SandboxStep(command="x", status=status)) for status in statuses]
