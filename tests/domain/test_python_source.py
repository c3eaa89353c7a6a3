"""Syntax trees, also where many threads want one at a time."""

import ast
import gc
import threading
import time

import pytest

from domain.python_source import syntax_tree


def test_source_becomes_a_tree() -> None:
    assert ast.dump(syntax_tree("x = 1")) == ast.dump(ast.parse("x = 1"))


@pytest.mark.parametrize("source", ["def f(:", "x = '\0'", "(" * 5000, "-" * 100_000 + "1"])
def test_whatever_is_no_python_is_a_syntax_error(source: str) -> None:
    with pytest.raises(SyntaxError):
        syntax_tree(source)


class _Slow:
    """Garbage whose end lets another thread run, in the middle of whatever collects it."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        time.sleep(0)


def test_threads_at_different_depths_do_not_disturb_each_other() -> None:
    source = "\n".join(f"def f{n}(x):\n    return [[x + {n}] for _ in range({n})]" for n in range(30))
    failed: list[BaseException] = []

    def work(depth: int) -> None:
        if depth:
            return work(depth - 1)
        try:
            for _ in range(20):
                made = [_Slow() for _ in range(30)]
                del made
                syntax_tree(source)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(10 * number,)) for number in range(4)]
    before = gc.get_threshold()
    gc.set_threshold(50)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.set_threshold(*before)

    assert not failed
