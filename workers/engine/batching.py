"""Continuous batching: which requests run, and one step of all of them at a time.

Rows are the occupied slots of the cache, always dense from 0. A new request is taken in
between two steps, smaller ``priority`` first; when all slots are taken, a request of higher
rank pushes out the one of lowest rank, which later starts again from its own tokens and, as
draws depend on seed and index alone, goes on as if nothing had happened. Rows of different
adapters run in one group each. Requests with the same prompt share its computation.

Nothing here knows of threads or HTTP: ``step`` is called by ``workers.engine.loop``.
"""

import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from workers.engine.adapters import Served
from workers.engine.metrics import Counters
from workers.engine.model import Cache, Forward, ModelConfig
from workers.engine.sampling import Drawn, Params, draw
from workers.engine.speculative import DRAFT, Drafter, accepted

PREFILL_TOKENS = 2048  # an admission round stops here, so that running rows are not held up
SPECULATE_ROWS = 8  # beyond that a batch fills the core by itself and drafts only cost


@dataclass(eq=False)
class Request:
    """One sequence to generate. The batcher alone changes the fields from ``drawn`` on."""

    prompt: list[int]
    params: Params
    served: Served
    priority: int = 0
    streaming: bool = False
    index: int = 0
    submitted_s: float = 0.0
    drawn: list[Drawn] = field(default_factory=list)
    text: list[int] = field(default_factory=list)  # prompt and drawn tokens
    cached: int = 0  # leading tokens of ``text`` whose keys are in the cache
    finish_reason: str = ""
    stop_reason: int | str | None = None
    cancelled: bool = False


@dataclass(frozen=True)
class Delta:
    """New tokens of one request, in order; ``finish_reason`` is empty while it runs."""

    request: Request
    drawn: tuple[Drawn, ...]
    finish_reason: str = ""


class Batcher:
    """``add`` requests, then ``step`` until ``busy`` is False."""

    def __init__(
        self,
        config: ModelConfig,
        *,
        decode: Callable[[Sequence[int]], str],
        slots: int = 64,
        max_length: int = 0,
        speculative: bool = False,
    ) -> None:
        self.config = config
        self.max_length = max_length or config.max_length
        self.slots = slots
        self.counters = Counters()
        self.rows: list[Request] = []
        self._waiting: list[tuple[int, int, Request]] = []
        self._order = itertools.count()
        self._decode = decode
        self._drafter = Drafter() if speculative else None
        room = self.max_length + DRAFT + 1
        self._cache = Cache(config, slots, room)
        self._forward = Forward(config, room)

    @property
    def busy(self) -> bool:
        return bool(self.rows or self._waiting)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def add(self, request: Request) -> None:
        request.text = list(request.prompt)
        heapq.heappush(self._waiting, (request.priority, next(self._order), request))
        self.counters.prompt_tokens += len(request.prompt)

    @torch.inference_mode()
    def step(self) -> list[Delta]:
        """Take in what fits and compute at least one token for every running row."""
        for row in [row for row in self.rows if row.cancelled]:
            self._leave(row)
        admitted = self._admit()
        deltas: list[Delta] = []
        for group in _by_adapter(admitted):
            deltas += self._prefill(group)
        running = [row for row in self.rows if row.cached == len(row.text) - 1 and row not in admitted]
        groups = _by_adapter(running)
        for group in groups:
            deltas += self._advance(group)
        for delta in deltas:
            if delta.finish_reason:
                self.counters.finished[delta.finish_reason] += 1
                self._leave(delta.request)
                if self._drafter is not None and delta.request.params.temperature == 0:
                    self._drafter.learn(delta.request.text, len(delta.request.prompt))
        return deltas

    def _admit(self) -> list[Request]:
        """Move requests from the queue to free slots, at the end of the rows."""
        admitted: list[Request] = []
        budget = PREFILL_TOKENS
        while self._waiting and budget > 0:
            priority, _, request = self._waiting[0]
            if request.cancelled:
                heapq.heappop(self._waiting)
                continue
            if len(self.rows) == self.slots:
                lowest = max(self.rows, key=lambda row: row.priority)
                if lowest.priority <= priority or lowest in admitted:
                    break
                self._leave(lowest)
                heapq.heappush(self._waiting, (lowest.priority, next(self._order), lowest))
                self.counters.preemptions += 1
            heapq.heappop(self._waiting)
            self.rows.append(request)
            admitted.append(request)
            budget -= len(request.text)
        return admitted

    def _prefill(self, group: list[Request]) -> list[Delta]:
        """Compute whole texts and draw the next token of each; equal texts are computed once."""
        slot_of = {id(row): slot for slot, row in enumerate(self.rows)}
        firsts: dict[tuple[int, ...], int] = {}
        for row in group:
            firsts.setdefault(tuple(row.text), slot_of[id(row)])
        texts = list(firsts)
        width = max(len(text) for text in texts)
        tokens = torch.zeros((len(texts), width), dtype=torch.long)
        for index, text in enumerate(texts):
            tokens[index, : len(text)] = torch.tensor(text)
        last = torch.tensor([len(text) - 1 for text in texts])
        start = torch.zeros(len(texts), dtype=torch.long)
        slots = torch.tensor(list(firsts.values()))
        logits = self._forward(group[0].served.weights, self._cache, tokens, start, slots, last)
        for row in group:
            source, target = firsts[tuple(row.text)], slot_of[id(row)]
            if source != target:
                self._cache.copy(source, target, len(row.text))
            row.cached = len(row.text)
        picked = torch.tensor([texts.index(tuple(row.text)) for row in group])
        drawn = draw(logits[picked], [row.params for row in group], [len(row.drawn) for row in group])
        return [self._take(row, [token]) for row, token in zip(group, drawn, strict=True)]

    def _advance(self, group: list[Request]) -> list[Delta]:
        """One decoding step: each row's newest token, and a draft behind it where one helps."""
        drafts = [self._draft(row, len(group)) for row in group]
        width = 1 + max(len(draft) for draft in drafts)
        fed = [[row.text[-1], *draft] for row, draft in zip(group, drafts, strict=True)]
        tokens = torch.tensor([ids + [0] * (width - len(ids)) for ids in fed])
        start = torch.tensor([row.cached for row in group])
        slots: torch.Tensor | slice = slice(0, len(group))
        if group != self.rows[: len(group)]:
            slot_of = {id(row): slot for slot, row in enumerate(self.rows)}
            slots = torch.tensor([slot_of[id(row)] for row in group])
        logits = self._forward(group[0].served.weights, self._cache, tokens, start, slots, None)
        where = [(row, query) for row, ids in enumerate(fed) for query in range(len(ids))]
        picked = logits[[row for row, _ in where], [query for _, query in where]]
        drawn = draw(
            picked,
            [group[row].params for row, _ in where],
            [len(group[row].drawn) + query for row, query in where],
        )
        deltas, offset = [], 0
        for row, draft in zip(group, drafts, strict=True):
            choices = drawn[offset : offset + 1 + len(draft)]
            offset += len(choices)
            kept = accepted(draft, [choice.token for choice in choices])
            self.counters.count_draft(len(draft), kept)
            row.cached += 1 + kept
            deltas.append(self._take(row, choices[: kept + 1]))
        return deltas

    def _draft(self, row: Request, rows: int) -> list[int]:
        if self._drafter is None or row.params.temperature > 0 or rows > SPECULATE_ROWS:
            return []
        room = min(row.params.max_tokens - len(row.drawn), self.max_length - len(row.text)) - 1
        return self._drafter.propose(row.text)[: max(room, 0)]

    def _take(self, row: Request, drawn: Sequence[Drawn]) -> Delta:
        """Append tokens up to the first that ends the request."""
        taken = 0
        for choice in drawn:
            row.drawn.append(choice)
            row.text.append(choice.token)
            taken += 1
            self.counters.generation_tokens += 1
            self.counters.ties += choice.tie
            row.finish_reason = self._ending(row, choice.token)
            if row.finish_reason:
                break
        return Delta(row, tuple(drawn[:taken]), row.finish_reason)

    def _ending(self, row: Request, token: int) -> str:
        params = row.params
        if token in self.config.eos_ids:
            return "stop"
        if token in params.stop_ids:
            row.stop_reason = token
            return "stop"
        if params.stop_texts:
            text = self._decode([choice.token for choice in row.drawn])
            row.stop_reason = next((stop for stop in params.stop_texts if stop in text), None)
            if row.stop_reason is not None:
                return "stop"
        if len(row.drawn) >= params.max_tokens or len(row.text) >= self.max_length:
            return "length"
        return ""

    def _leave(self, row: Request) -> None:
        """Free a slot; the last row moves into it so that rows stay dense."""
        slot = next(slot for slot, other in enumerate(self.rows) if other is row)
        last = self.rows.pop()
        if last is not row:
            self._cache.copy(len(self.rows), slot, last.cached)
            self.rows[slot] = last
        row.cached = 0


def _by_adapter(rows: list[Request]) -> list[list[Request]]:
    groups: dict[int, list[Request]] = {}
    for row in rows:
        groups.setdefault(id(row.served), []).append(row)
    return list(groups.values())
