"""The answers of a unit, kept outside its process until the unit is over.

An answer is paid for the moment it exists; a worker that dies before it was judged must not have it
generated again. Every answer is written before its judging begins, and the next attempt finds them, on
whichever machine it runs. On this machine's disk each is added to one file at once, as a wait would hold
back the next question; an object store takes those together that come together (group commit).

A part is named ``<first index>-<last index>-<unit>-<random>`` in the folder of its journal, so that a
later unit reads only those parts that may hold its cases.
"""

import asyncio
import json
import logging
import re
import uuid
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, BinaryIO

from artifacts import ArtifactStore, Scratch
from artifacts.compact_json import compact_json
from domain.contracts import RunEvalBatch

log = logging.getLogger(__name__)

_FOLDER = "journals"
_PART = re.compile(r"(\d+)-(\d+)-[0-9a-f]+-[0-9a-f]+\.jsonl")
_GATHER_S = 0.01  # answers that come this close together are written together
KEEP_S = 7 * 24 * 3600.0  # what a run that was given up leaves behind


class AnswerJournal:
    """Answers by key (see ``workers.remembering``) of one unit. Use inside a running event loop."""

    def __init__(self, store: ArtifactStore, message: RunEvalBatch) -> None:
        payload = message.model_dump_json().encode()
        self._unit = sha256(payload).hexdigest()[:16]
        self._folder = f"{_FOLDER}/{sha256(message.journal.encode() or payload).hexdigest()[:32]}"
        self._first, self._last = min(message.indexes, default=0), max(message.indexes, default=0)
        self._scratch = Scratch(store)
        self._own: set[str] = set()
        self._found: dict[str, Any] = {}
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None
        self._file: BinaryIO | None = None
        self._warned = False

    @property
    def found(self) -> int:
        """How many answers earlier attempts left."""
        return len(self._found)

    def load(self) -> None:
        """Read what earlier attempts at these cases left. A torn line is as if it had never been."""
        for name in self._scratch.names(self._folder):
            part = _PART.fullmatch(name.rpartition("/")[2])
            if part is None or int(part[1]) > self._last or int(part[2]) < self._first:
                continue
            if int(part[1]) >= self._first and int(part[2]) <= self._last:
                self._own.add(name)
            for line in (self._scratch.get(name) or b"").split(b"\n"):
                try:
                    row = json.loads(line)
                    self._found[row["key"]] = row["reply"]
                except (ValueError, KeyError, TypeError):
                    continue

    def find(self, key: str) -> Any:
        """The answer as it was kept, None where there is none."""
        return self._found.get(key)

    async def keep(self, key: str, reply: Any) -> None:
        """Return once ``reply`` (JSON) is written."""
        line = compact_json({"key": key, "reply": reply}) + b"\n"
        if self._scratch.is_local:
            self._add(line)
            return
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((line, written))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        await written

    def close(self) -> None:
        """Nothing more is written; what was stays for the next attempt."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """Forget all: the results are where they belong."""
        for name in self._own:
            self._scratch.remove(name)

    def _add(self, line: bytes) -> None:
        try:
            if self._file is None:
                name = self._part()
                self._file = self._scratch.begin(name)
                self._own.add(name)
            if self._file.write(line) != len(line):  # torn: what follows must not be torn with it
                self.close()
        except OSError as error:
            self._not_kept(error)

    def _not_kept(self, error: OSError) -> None:
        """An evaluation goes on without its safety net; that is said once, not for each answer."""
        if not self._warned:
            self._warned = True
            log.warning("answers were not journaled: %s", type(error).__name__)

    def _part(self) -> str:
        return f"{self._folder}/{self._first}-{self._last}-{self._unit}-{uuid.uuid4().hex}.jsonl"

    async def _write(self) -> None:
        """Write until nothing waits; whatever came during one write goes into the next."""
        while self._waiting:
            await asyncio.sleep(_GATHER_S)
            batch, self._waiting = self._waiting, []
            name, data = self._part(), b"".join(line for line, _ in batch)
            try:
                await asyncio.to_thread(self._scratch.put, name, data)
                self._own.add(name)
            except OSError as error:
                self._not_kept(error)
            for _, written in batch:
                if not written.done():  # its episode may have been given up meanwhile
                    written.set_result(None)


def journals_sweep(store: ArtifactStore, now: datetime | None = None) -> int:
    """Remove parts that nobody came back for; returns how many."""
    scratch, now = Scratch(store), now or datetime.now(UTC)
    old = [name for name in scratch.names(_FOLDER) if (scratch.age_s(name, now) or 0.0) > KEEP_S]
    for name in old:
        scratch.remove(name)
    return len(old)
