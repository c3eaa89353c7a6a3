"""What a run is made of besides its dataset: sampling of groups, refills, and the trainer's numbers."""

from typing import Any

from pydantic import Field, ValidationError

from apps.core.errors import Refused
from domain.contracts.base import Contract
from domain.contracts.training import TrainConfig


class RunConfig(Contract):
    """Defaults suit the pocket model on two cores.

    A step samples ``groups`` tasks ``group_size`` times each. Groups whose rewards are all equal
    teach nothing; up to ``refills`` times a step draws other tasks in their place.
    """

    groups: int = Field(default=8, ge=1, le=4096)
    group_size: int = Field(default=8, ge=2, le=256)
    refills: int = Field(default=1, ge=0, le=8)
    concurrency: int = Field(default=64, ge=1, le=4096)
    train: TrainConfig = TrainConfig()


def parse_config(values: dict[str, Any]) -> RunConfig:
    """Raises Refused naming the field."""
    try:
        return RunConfig.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise Refused(f"Configuration, {place}: {first['msg']}.", code="config_invalid") from None
