"""The one base class of all contracts."""

from pydantic import BaseModel, ConfigDict


class Contract(BaseModel):
    """Frozen payload; unknown fields and non-finite numbers are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
