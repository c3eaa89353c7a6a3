"""One lock for everything that moves traffic of a project, so that such writes happen one by one."""

from apps.core.models import Project


def project_lock(project: Project) -> None:
    """Hold the project's row until the transaction ends.

    ``no_key``: rows that merely point at the project can still be inserted meanwhile. Where the
    database locks as a whole (SQLite), the transaction itself is the lock.
    """
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
