"""How long a run went on, without pauses: started, stopped, started again."""

from django.utils import timezone

from apps.evals.models import Run


def clock_start(run: Run, *, done: int) -> None:
    """``done`` samples are done already: the pace counts from here. The caller saves the run."""
    run.running_since, run.done_before = timezone.now(), done


def clock_stop(run: Run) -> None:
    """Keep what has gone by. The caller saves the run."""
    if run.running_since is not None:
        run.ran_s += max(0.0, (timezone.now() - run.running_since).total_seconds())
        run.running_since = None
