"""The document loop: extract, check, locate, extract again, submit. A pure state machine, no code runs.

``environment_params``: ``pages`` [text], ``tables`` [{title, page, header, rows}], ``relations`` (those of
the verifier ``accounting``, or plain formulas: the ones that may be seen), ``tolerance``, ``decimal``,
``max_turns``. ``check`` says which visible relation a draft breaks, and where in the document its figures
stand. The answer is what ``submit`` was given, as JSON.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from domain.contracts import SandboxStep, TaskSpec
from domain.verifiers.accounting import relation_check
from domain.verifiers.formula import FormulaError, parse_formula
from domain.verifiers.numbers import parse_number
from workers.environments.actions import Action, Definition
from workers.environments.tool_definitions import tool
from workers.environments.turns import Outcome, TaskRefused
from workers.environments.workspace import cut

_REPLY_CHARS = 8000
_COMMAND_CHARS = 2000
_HITS = 12
_PLACES = 3  # of one figure
_NUMBER = re.compile(r"[-−(]?[0-9][0-9.,'\u00a0\u202f ]*[0-9]|[0-9]")


class Documents:
    """A ``World`` that is read, not changed."""

    def __init__(self) -> None:
        self._pages: list[str] = []
        self._tables: list[Mapping[str, Any]] = []
        self._relations: list[Mapping[str, Any]] = []
        self._params: Mapping[str, Any] = {}
        self._answer = ""

    def tools(self) -> Sequence[Definition]:
        return TOOLS

    async def start(self, task: TaskSpec) -> None:
        self._params = task.environment_params
        self._pages = _texts(task)
        self._tables = list(self._params.get("tables", ()))
        self._relations = _relations(task)

    async def do(self, action: Action) -> Outcome:
        shown = cut(f"{action.tool} {json.dumps(action.arguments, ensure_ascii=False)}", _COMMAND_CHARS)
        if action.tool == "submit":
            answer = action.arguments["answer"]
            self._answer = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
            return Outcome("", SandboxStep(command=shown, stdout=cut(self._answer, _REPLY_CHARS)), over=True)
        try:
            reply = cut(self._looked(action), _REPLY_CHARS)
        except IndexError as error:
            return Outcome(f"Error: {error}", SandboxStep(command=shown, status="refused", detail=str(error)))
        return Outcome(reply, SandboxStep(command=shown, stdout=reply))

    def takes_words(self, text: str) -> bool:
        return False

    async def evidence(self) -> Mapping[str, Mapping[str, Any]]:
        return {}

    def answer_text(self) -> str:
        return self._answer

    async def close(self) -> None:
        return None

    def _looked(self, action: Action) -> str:
        if action.tool == "search":
            return self._search(action.arguments["text"])
        if action.tool == "read_page":
            return str(_numbered(self._pages, action.arguments["n"], "page"))
        if action.tool == "read_table":
            return _table(_numbered(self._tables, action.arguments["n"], "table"))
        return self._check(action.arguments["fields"])

    def _search(self, text: str) -> str:
        wanted = " ".join(text.casefold().split())
        hits = [
            f"page {page}, line {line}: {content.strip()}"
            for page, line, content in self._lines()
            if wanted in " ".join(content.casefold().split())
        ]
        hits += [
            f"table {number}: {_row(row)}"
            for number, table in enumerate(self._tables, start=1)
            for row in table.get("rows", ())
            if wanted in _row(row).casefold()
        ]
        more = f"\n… and {len(hits) - _HITS} more" if len(hits) > _HITS else ""
        return "\n".join(hits[:_HITS]) + more if hits else f"{text!r} is nowhere in the document."

    def _check(self, fields: Mapping[str, Any]) -> str:
        """Which visible relations the draft breaks, and where its figures stand."""
        if not self._relations:
            return "There are no relations to check for this document."
        broken: list[str] = []
        for relation in self._relations:
            found = relation_check(relation, fields, self._params)
            if found.reason:
                names = sorted(parse_formula(relation["formula"]).names)
                broken += [found.reason, *(self._where(name, fields) for name in names)]
        held = len(self._relations) - sum(line.startswith("Relation ") for line in broken)
        return "\n".join([f"{held} of {len(self._relations)} relations hold.", *broken])

    def _where(self, name: str, fields: Mapping[str, Any]) -> str:
        value: Any = fields
        for key in name.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        if value is None:
            return f"  {name}: not given"
        number = parse_number(value, self._params.get("decimal", "auto"))
        places = [] if number is None else list(self._places(number))
        where = "; ".join(places[:_PLACES]) or "this figure is nowhere in the document"
        return f"  {name} = {value}: {where}"

    def _places(self, number: Any) -> Iterator[str]:
        decimal = self._params.get("decimal", "auto")
        for page, line, content in self._lines():
            figures = (parse_number(match.strip(), decimal) for match in _NUMBER.findall(content))
            if any(figure is not None and abs(figure) == abs(number) for figure in figures):
                yield f"page {page}, line {line}"

    def _lines(self) -> Iterator[tuple[int, int, str]]:
        for page, text in enumerate(self._pages, start=1):
            for line, content in enumerate(text.splitlines(), start=1):
                yield page, line, content


def _texts(task: TaskSpec) -> list[str]:
    pages = task.environment_params.get("pages")
    if not isinstance(pages, list) or not pages or not all(isinstance(page, str) for page in pages):
        raise TaskRefused(f'task {task.id}: environment_params["pages"] must be a list of texts')
    tables = task.environment_params.get("tables", [])
    if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
        raise TaskRefused(f'task {task.id}: environment_params["tables"] must be a list of objects')
    return pages


def _relations(task: TaskSpec) -> list[Mapping[str, Any]]:
    found = []
    for entry in task.environment_params.get("relations", ()):
        relation = {"formula": entry} if isinstance(entry, str) else entry
        try:
            parse_formula(relation["formula"])
        except (FormulaError, KeyError, TypeError) as error:
            raise TaskRefused(f"task {task.id}: a relation cannot be read: {error}") from error
        found.append(relation)
    return found


def _numbered(items: Sequence[Any], number: int, what: str) -> Any:
    """The item called ``number``, counted from 1. Raises ``IndexError`` in words for the model."""
    if not 1 <= number <= len(items):
        count = f"1 to {len(items)}" if items else "none"
        raise IndexError(f"there is no {what} {number}; there are: {count}")
    return items[number - 1]


def _table(table: Mapping[str, Any]) -> str:
    head = [str(table["title"])] if table.get("title") else []
    head += [_row(table["header"])] if table.get("header") else []
    return "\n".join([*head, *(_row(row) for row in table.get("rows", ()))])


def _row(cells: Sequence[Any]) -> str:
    return " | ".join("" if cell is None else str(cell) for cell in cells)


_N = {"type": "integer", "description": "counted from 1"}
TOOLS: tuple[Definition, ...] = (
    tool("search", "Lines and table rows that hold a text.", text="what to look for"),
    tool("read_page", "One page of the document.", n=_N),
    tool("read_table", "One table of the document.", n=_N),
    tool(
        "check",
        "Check drafted fields against the relations that must hold between them.",
        fields={"type": "object"},
    ),
    tool("submit", "Hand in the answer. Ends the work.", answer={"type": ["object", "string"]}),
)
