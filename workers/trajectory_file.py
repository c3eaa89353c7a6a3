"""Trajectories as Parquet bytes, laid out by ``domain.contracts.trajectory_table``."""

import io
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.parquet as pq

from domain.contracts import Trajectory
from domain.contracts.trajectory_table import COLUMNS, METADATA_KEY, RolloutInfo, to_row


def trajectory_file(trajectories: Iterable[Trajectory], info: RolloutInfo) -> bytes:
    """One row per trajectory, zstd; ``info`` goes into the schema's metadata."""
    schema = pa.schema(
        [(name, _arrow_type(kind)) for name, kind in COLUMNS.items()],
        metadata={METADATA_KEY: info.model_dump_json()},
    )
    rows = [to_row(trajectory, policy_version=info.policy_version) for trajectory in trajectories]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), sink, compression="zstd")
    return sink.getvalue()


def _arrow_type(kind: str) -> pa.DataType:
    return pa.list_(_arrow_type(kind[1:-1])) if kind.startswith("[") else pa.type_for_alias(kind)
