"""What a solution may not hold when it shares a process with its judge."""

import pytest

from domain.verifiers.screening import suspicious


@pytest.mark.parametrize(
    "source",
    [
        "import sys",
        "from os import _exit",
        "import gc, json",
        "import unittest.mock",
        "__import__('os')",
        "exec('x')",
        "x.__globals__",
        "().__class__.__bases__[0].__subclasses__()",
        "f.f_back",
        "getattr(x, '__globals__')",
        "getattr(x, name)",
        "raise SystemExit",
        "raise SystemExit(0)",
        "class A:\n    def __eq__(self, other): return True",
        "class A:\n    __eq__ = lambda self, other: True",
        "open('/workspace/repo/tests/test_x.py')",
        "from checks import same",
        "def broken(:",
    ],
)
def test_what_reaches_for_the_judge_is_found(source: str) -> None:
    assert suspicious(source)


@pytest.mark.parametrize(
    "source",
    [
        "import math\nfrom collections import Counter",
        "from shop.cart import total",
        "from .os import x",
        "# import sys\nx = 'import sys; exec(1)'",
        "getattr(x, 'price')",
        "raise ValueError('sys')",
        "class A:\n    def __repr__(self): return 'A'",
    ],
)
def test_ordinary_code_is_free(source: str) -> None:
    assert suspicious(source) == []


def test_findings_name_their_line() -> None:
    assert suspicious("x = 1\nimport gc\n") == ["import gc (line 2)"]
