"""Runs inside a sandbox, with the solution under ``/workspace/repo``; never imported by a worker.

Imports, looks up and calls what the host asks for. Values go back as typed JSON; what is no builtin
value stays here, and the host gets a handle. All of it shares a process with the solution and is
trusted by nobody: whoever asked compares what comes back on the other side of the wall.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself takes milliseconds to import
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def main() -> None:
    import importlib
    import json
    import os
    import sys
    import types

    sys.path.insert(0, "/workspace")
    import typed_json  # type: ignore[import-not-found]

    sys.path[0] = "/workspace/repo"
    channel = int(os.environ.pop("FLYWHEEL_CHANNEL"))
    os.set_inheritable(channel, False)
    read, write, dumps, loads, leave = os.read, os.write, json.dumps, json.loads, os._exit
    encode, decode, refused = typed_json.encode, typed_json.decode, typed_json.Unencodable
    largest, most = 256 * 1024, 20_000
    held: dict[str, Any] = {}
    # A ``functools.partial`` that a program made is its own, whatever module that class comes from.
    code = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType)

    def own(value: Any) -> bool:
        """Whether a module, class or function comes from the repository."""
        where = getattr(value, "__module__", None) or ""
        home = value if isinstance(value, types.ModuleType) else sys.modules.get(where)
        places = [getattr(home, "__file__", None) or "", *getattr(home, "__path__", ())]
        return any(place.startswith("/workspace/repo/") for place in places)

    def looked_up(target: Any, name: str) -> Any:
        """What a program shows to its callers. Its own text, and all that leads to it (other modules, what
        was imported from them, frames and code), stays here: tests judge what a program does."""
        value = getattr(target, name)
        inner = isinstance(value, (types.CodeType, types.FrameType, types.TracebackType))
        bound = isinstance(value, types.ModuleType) or (
            isinstance(target, types.ModuleType) and isinstance(value, code)
        )
        if name.startswith("__") or inner or (bound and not own(value)):
            raise AttributeError(f"{name} is not shown to tests")
        return value

    def hand(value: Any) -> dict[str, Any]:
        try:
            return {"value": encode(value)}
        except (refused, RecursionError):
            if len(held) >= most:
                raise MemoryError("too many objects are held") from None
        key = f"h{len(held)}"
        held[key] = value
        return {"handle": key, "name": str(getattr(value, "__name__", type(value).__name__))[:100]}

    def take(argument: dict[str, Any]) -> Any:
        return held[argument["handle"]] if "handle" in argument else decode(argument["value"])

    def act(request: dict[str, Any]) -> Any:
        if request["do"] == "import":
            module = importlib.import_module(request["name"])
            if not own(module):
                raise ImportError(f"{request['name']} is no module of the repository")
            return module
        target = held[request["target"]]
        if request["do"] == "get":
            return looked_up(target, request["name"])
        if request["do"] == "item":
            return target[take(request["key"])]
        if request["do"] == "len":
            return len(target)
        positional = [take(argument) for argument in request["args"]]
        named = {name: take(argument) for name, argument in request["kwargs"].items()}
        return target(*positional, **named)

    def failure(error: BaseException) -> dict[str, Any]:
        names = [kind.__name__ for kind in type(error).__mro__][:20]
        try:
            text = str(error)[:300]
        except BaseException:
            text = ""
        return {"raised": names, "text": text}

    def send(nonce: str, reply: dict[str, Any]) -> None:
        line = dumps({**reply, "nonce": nonce}, allow_nan=False).encode() + b"\n"
        if len(line) > largest:
            return send(nonce, {"raised": ["ValueError"], "text": "the value is too large to cross"})
        while line:
            line = line[write(channel, line) :]

    def lines() -> Iterator[dict[str, Any]]:
        pending = b""
        while chunk := read(channel, 65536):
            pending += chunk
            while b"\n" in pending:
                line, _, pending = pending.partition(b"\n")
                yield loads(line)

    for request in lines():
        try:
            reply = hand(act(request))
        except BaseException as error:
            reply = failure(error)
        send(request["nonce"], reply)
    leave(0)


if __name__ == "__main__":
    main()
