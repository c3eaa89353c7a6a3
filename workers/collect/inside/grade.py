"""Runs inside a sandbox: makes a grader from its source, calls it once with the answer as data.

The result goes back as typed JSON with the nonce of the question; standard output is thrown away.
"""

from typing import Any


def main() -> None:
    import contextlib
    import io
    import json
    import os
    import sys

    sys.path.insert(0, "/workspace")
    import typed_json  # type: ignore[import-not-found]

    channel = int(os.environ.pop("FLYWHEEL_CHANNEL"))
    os.set_inheritable(channel, False)
    with open(channel, "rb", closefd=False) as reader:
        asked = json.loads(reader.readline())
    nonce, dumps, write, leave = asked["nonce"], json.dumps, os.write, os._exit
    with contextlib.redirect_stdout(io.StringIO()):
        found = _graded(asked, typed_json)
    line = dumps({"nonce": nonce, **found}, allow_nan=False).encode("utf-8", "replace") + b"\n"
    while line:
        line = line[write(channel, line) :]
    while os.read(channel, 65536):  # the host has all of it when it hangs up
        pass
    leave(0)


def _graded(asked: dict[str, Any], typed_json: Any) -> dict[str, Any]:
    import types

    module = types.ModuleType("grader")
    try:
        exec(compile(asked["source"], "grader.py", "exec"), module.__dict__)
        value = module.grade(typed_json.decode(asked["sample"]), typed_json.decode(asked["item"]))
    except BaseException as error:
        return {"error": _described(error)}
    try:
        return {"result": typed_json.encode(value)}
    except Exception:
        return {"error": f"it returned a {type(value).__name__[:60]}, no number"}


def _described(error: BaseException) -> str:
    try:
        text = f"{type(error).__name__}: {error}"
    except BaseException:
        text = type(error).__name__
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "grader.py":
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"{text[:200]}{f' (line {line})' if line else ''}"


if __name__ == "__main__":
    main()
