"""The code standards pack: its families, and the object that the entry point names."""

from pathlib import Path

from packs.code_standards import branches, docstrings, headers, idioms, names, one_liners, traps, types
from packs.coding.draft import Make, Tasks
from packs.registry import Pack, PackFamily

_KINDS = ("gate", "python_tests", "lint")
_FAMILIES: tuple[tuple[str, str, str, Make], ...] = (
    ("style_fix", "Style", "Rewrite a function of a few steps, each of which breaks a rule.", idioms.draft),
    ("style_simple", "Style, one line", "One line, one rule; made for very small models.", one_liners.draft),
    ("imports", "Imports", "Sort imports, one a line, nothing twice, nothing unused.", headers.draft),
    (
        "naming",
        "Names",
        "Give functions, arguments, variables and classes names as PEP 8 has them.",
        names.draft,
    ),
    (
        "docstring",
        "Docstrings",
        "Write a docstring in Google's style for a public function.",
        docstrings.draft,
    ),
    ("annotations", "Annotations", "Give arguments and results their types.", types.annotations),
    ("modern_syntax", "Modern syntax", "Replace old types and texts by today's syntax.", types.modern_syntax),
    (
        "complexity",
        "Complexity",
        "Turn chains and nests of conditions into tables and rules.",
        branches.draft,
    ),
    (
        "bug_traps",
        "Traps",
        "Remove what works today and bites tomorrow, such as a changing default.",
        traps.draft,
    ),
)
FAMILIES = tuple(PackFamily(name, title, text, _KINDS) for name, title, text, _ in _FAMILIES)
TASKS = Tasks("code_standards", {name: make for name, _, _, make in _FAMILIES})

PACK = Pack(
    name="code_standards",
    title="Code standards",
    families=FAMILIES,
    generate=TASKS.generate,
    gold_answer=TASKS.gold_answer,
    bad_answers=TASKS.bad_answers,
    description="Rules of a linter as rewards: the code must be clean and do what it did.",
    folder=str(Path(__file__).parent),
)
