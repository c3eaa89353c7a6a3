"""Programs that only compute, and those that run another program kept as text."""

import pytest

from domain.verifiers.plain_program import beyond_computing


@pytest.mark.parametrize(
    "source",
    [
        "exec('x = 1')",
        "f = eval",
        "import builtins",
        "import runpy",
        "from importlib import import_module",
        "import answer_of_mine",
        "from . import other",
        "import json\njson.codecs.builtins.exec('x = 1')",
        "import typing\ntyping.sys.modules",
        "from typing import sys",
        "from math import *",
        "import collections\ncollections._sys",
        "import json\nm = json\nm.codecs",
        "from operator import attrgetter",
        "import operator\noperator.methodcaller('x')",
        "def f():\n    pass\nf.__globals__",
        "().__class__.__base__",
        "match f:\n    case object(__globals__=g):\n        pass",
        "(x for x in y).gi_frame",
        "open('a.py', 'w')",
        "getattr(f, 'x' + 'y')",
        "__builtins__['exec']",
        "from functools import singledispatch",
        "from typing import get_type_hints",
    ],
)
def test_what_runs_texts_or_looks_inside_the_interpreter_is_named(source: str) -> None:
    assert beyond_computing(source)


@pytest.mark.parametrize(
    "source",
    [
        "import json\nfrom collections import Counter\n\n\ndef f(xs):\n    return json.dumps(Counter(xs))\n",
        "import collections.abc\nx: collections.abc.Mapping",
        "import re as regex\n\nprint(regex.sub('a', 'b', 'c'))",
        "class A:\n    def __init__(self, code):\n        self._code = code\n        self.code = code\n",
        "from __future__ import annotations\nfrom dataclasses import dataclass\n",
        '"""Say exec and open."""\n# eval\n',
        "x = 'exec'",
    ],
)
def test_programs_that_compute_are_left_alone(source: str) -> None:
    assert beyond_computing(source) == []


def test_each_finding_names_its_line() -> None:
    assert beyond_computing("x = 1\nimport os\nexec('')\n") == ["import os (line 2)", "exec (line 3)"]
