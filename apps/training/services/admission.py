"""Which verifiers stand in the way: training may use a verifier only while it is admitted."""

from apps.core.errors import Conflict
from apps.feedback.models import Dataset, Family, Verifier


def verifiers_not_admitted(dataset: Dataset, limit: int = 5) -> list[Verifier]:
    """Verifiers of the dataset's tasks that have not passed the gauntlet."""
    rows = Verifier.objects.filter(assets__datasets=dataset).exclude(admission=Verifier.Admission.ADMITTED)
    return list(rows.distinct()[:limit])


def require_admission(dataset: Dataset) -> None:
    """Raises Conflict with the names of what may not train: verifiers that are not admitted, and families
    whose answers cannot be verified on this installation."""
    refused = verifiers_not_admitted(dataset)
    if refused:
        raise Conflict(
            f"These verifiers have not passed the gauntlet, so they may not train: {names_of(refused)}.",
            code="verifier_not_admitted",
            verifiers=[str(verifier) for verifier in refused],
        )
    family = Family.objects.filter(assets__datasets=dataset).exclude(unavailable="").first()
    if family is not None:
        raise Conflict(
            f"Answers of {family.title} cannot be verified here: {family.unavailable}",
            code="family_unavailable",
        )


def names_of(verifiers: list[Verifier]) -> str:
    return ", ".join(str(verifier) for verifier in verifiers)
