"""Python source as a syntax tree, from any thread.

CPython 3.11 counts the depth of a tree in the making once for all threads: two threads in
``ast.parse`` at a time end in ``SystemError: AST constructor recursion depth mismatch``, whatever the
source. So everybody who wants a tree asks here, one after another.
"""

import ast
import threading

_one_at_a_time = threading.Lock()


def syntax_tree(source: str) -> ast.Module:
    """As ``ast.parse``. Raises ``SyntaxError`` for whatever is no Python: nested too deeply, holding null
    characters, too large to read."""
    with _one_at_a_time:
        try:
            return ast.parse(source)
        except (ValueError, RecursionError, MemoryError) as error:
            raise SyntaxError(str(error) or type(error).__name__) from error
