"""REST: suites drawn from installed packs."""

from typing import Any

from ninja import Field, Router, Schema

from apps.core.api import ApiRequest, ErrorOut
from apps.evals import services
from apps.evals.api_suites import SuiteOut

router = Router(tags=["evals"])


class PackSuiteIn(Schema):
    """``families`` by name, as ``flywheel packs list`` shows them."""

    name: str = Field(min_length=1, max_length=100)
    families: list[str]
    per_family: int = 20
    seed: int = 0


@router.post("/pack-suites", response={202: SuiteOut, 400: ErrorOut})
def pack_suite_create(request: ApiRequest, body: PackSuiteIn) -> Any:
    """The suite, whose next version is being made; ask for its versions until it is there."""
    request.auth.require("evals")
    suite = services.pack_suite_create(project=request.auth.project, by=request.auth, **body.dict())
    return 202, suite
