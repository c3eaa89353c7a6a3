"""Units of traffic for tests of releases."""

from apps.versions import services
from apps.versions.models import Deployment, ModelVersion, Release

Arm = tuple[int, int]  # units, failed


def traffic(release: Release, *, canary: Arm, control: Arm, segment: int | None = None) -> None:
    """Add fresh units to the release's current segment."""
    segment = release.segment if segment is None else segment
    start = release.units.count()
    services.release_units_record(
        observations=[
            services.UnitObservation(
                release_id=release.pk,
                segment=segment,
                unit=f"{start}-{arm}-{index}",
                arm=arm,
                failure="error" if index < failed else "",
            )
            for arm, (units, failed) in (("canary", canary), ("control", control))
            for index in range(units)
        ]
    )


def load(version: ModelVersion) -> None:
    """Let every engine hold ``version``."""
    for row in Deployment.objects.engines():
        row.healthy, row.loaded = True, [*row.loaded, version.adapter_name]
        row.save()
