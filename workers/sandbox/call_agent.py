"""Runs inside the sandbox, beside ``solution.py`` and ``typed_json.py``; never imported by a worker.

Loads the answer, then makes one call for each line the host sends and writes one line back. All of
it shares a process with the answer and is trusted by nobody: the host knows what to expect.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself takes milliseconds to import
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def main() -> None:
    import json
    import os
    import sys
    import types

    sys.path.insert(0, "/workspace")
    import typed_json  # type: ignore[import-not-found]

    channel = int(os.environ.pop("FLYWHEEL_CHANNEL"))
    os.set_inheritable(channel, False)
    read, write, dumps, loads = os.read, os.write, json.dumps, json.loads
    encode, decode, leave = typed_json.encode, typed_json.decode, os._exit
    largest = 256 * 1024

    def describe(error: BaseException) -> str:
        try:
            return f"{type(error).__name__}: {error}"[:300]
        except BaseException:
            return type(error).__name__[:300]

    def answer(nonce: str, status: str, value: Any = None, error: str = "") -> None:
        frame = {"nonce": nonce, "status": status, "value": value, "error": error}
        line = dumps(frame, allow_nan=False).encode() + b"\n"
        if len(line) > largest:
            return answer(nonce, "error", error="the returned value is too large")
        while line:
            line = line[write(channel, line) :]

    def lines() -> Iterator[dict[str, Any]]:
        pending = b""
        while chunk := read(channel, 65536):
            pending += chunk
            while b"\n" in pending:
                line, _, pending = pending.partition(b"\n")
                yield loads(line)

    requests = lines()
    start = next(requests)
    module = types.ModuleType("solution")
    module.__file__ = "/workspace/solution.py"
    sys.modules["solution"] = module
    broken = ""
    try:
        with open(module.__file__, encoding="utf-8") as stream:
            exec(compile(stream.read(), module.__file__, "exec"), module.__dict__)
        function = module.__dict__[start["entry_point"]]
    except KeyError:
        broken = f"NameError: the program defines no {start['entry_point']!r}"
    except BaseException as error:
        broken = describe(error)
    answer(start["nonce"], "error" if broken else "ok", error=broken)

    for request in requests:
        try:
            args = [decode(item) for item in request["args"]]
            kwargs = {name: decode(item) for name, item in request["kwargs"].items()}
            result = encode(function(*args, **kwargs))
        except BaseException as error:
            answer(request["nonce"], "error", error=describe(error))
        else:
            answer(request["nonce"], "ok", value=result)
    leave(0)


if __name__ == "__main__":
    main()
