"""The coding pack: its families, and the object that the entry point names."""

from pathlib import Path

from packs.coding import completions, fixes, functions, mutations, repairs, sql, traces
from packs.coding.draft import Tasks
from packs.registry import Pack, PackFamily

FAMILIES = (
    PackFamily(
        "code_functions",
        "Functions",
        "Write a function over integers, texts, lists or dicts; judged by calls that are not shown.",
        ("python_tests",),
    ),
    PackFamily("code_trace", "What it prints", "Say what a short program prints.", ("exact",)),
    PackFamily(
        "code_complete",
        "Missing function",
        "Write the missing function of a small package; judged by hidden tests of the package.",
        ("repo_tests",),
    ),
    PackFamily(
        "bug_repair",
        "Bug repair",
        "Find and repair bugs in a small repository with its tools; judged by hidden tests.",
        ("repo_tests",),
        environment="coding",
        parts=("code_trace", "code_functions", "code_complete"),
    ),
    PackFamily(
        "test_writing",
        "Tests that notice",
        "Write tests that pass on a module and fail on its mutants.",
        ("mutants",),
        parts=("code_trace", "code_complete"),
    ),
    PackFamily(
        "sql_query",
        "SQL questions",
        "Answer a question over two tables with one SELECT; judged on a hidden database too.",
        ("sql_result",),
        parts=("sql_simple",),
    ),
    PackFamily(
        "sql_simple",
        "SQL, one table",
        "One short SELECT over one table; made for very small models.",
        ("sql_result",),
    ),
    PackFamily(
        "fix_simple",
        "One-line fixes",
        "Write one broken line of Python right; made for very small models.",
        ("python_tests",),
    ),
    PackFamily(
        "trace_simple",
        "What one line prints",
        "Say what one short line prints; made for very small models.",
        ("exact",),
    ),
)

TASKS = Tasks(
    "coding",
    {
        "code_functions": functions.draft,
        "code_trace": traces.draft,
        "code_complete": completions.draft,
        "bug_repair": repairs.draft,
        "test_writing": mutations.draft,
        "sql_query": sql.draft,
        "sql_simple": sql.simple,
        "fix_simple": fixes.draft,
        "trace_simple": traces.simple,
    },
)

PACK = Pack(
    name="coding",
    title="Coding",
    families=FAMILIES,
    generate=TASKS.generate,
    gold_answer=TASKS.gold_answer,
    bad_answers=TASKS.bad_answers,
    description="Functions, repositories, tests and queries, judged by running them apart from their tests.",
    folder=str(Path(__file__).parent),
)
