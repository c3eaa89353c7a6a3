"""Runs inside the sandbox that runs the answer: the script, then its solids as plain meshes.

All of it shares a process with the answer and is trusted by nobody. The host takes vertices and
faces and has them measured elsewhere; nothing that is printed, written or claimed here counts.
"""

from typing import Any


def main() -> None:
    import json
    import os
    import sys

    sys.path.insert(0, "/workspace")
    import numpy
    import shapes  # type: ignore[import-not-found]

    channel = int(os.environ.pop("FLYWHEEL_CHANNEL"))
    os.set_inheritable(channel, False)
    read, write, leave = os.read, os.write, os._exit

    def send(data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[write(channel, view) :]

    line = b""
    while not line.endswith(b"\n"):
        piece = read(channel, 65536)
        if not piece:
            leave(1)
        line += piece
    asked = json.loads(line)

    def describe(error: BaseException) -> str:
        line = getattr(error, "lineno", None)
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == "script.py":
                line = trace.tb_lineno
            trace = trace.tb_next
        where = f" (line {line})" if line else ""
        try:
            return f"{type(error).__name__}: {error}{where}"[:300]
        except BaseException:
            return type(error).__name__[:300]

    def reply(status: str, meshes: list[tuple[str, Any, Any]], error: str = "") -> None:
        sizes = [[name, len(vertices), len(faces)] for name, vertices, faces in meshes]
        head = {"nonce": asked["nonce"], "status": status, "meshes": sizes, "error": error}
        send(json.dumps(head).encode() + b"\n")
        for _, vertices, faces in meshes:
            send(vertices.tobytes())
            send(faces.tobytes())

    def arrays(name: object, solid: Any) -> tuple[str, Any, Any]:
        if not isinstance(solid, shapes.Solid):
            raise TypeError(f"{name} must be a solid, not {type(solid).__name__}")
        mesh = solid.body.to_mesh64()
        vertices = numpy.ascontiguousarray(mesh.vert_properties[:, :3], dtype="<f8")
        faces = numpy.ascontiguousarray(mesh.tri_verts, dtype="<u4")
        if not len(faces):
            raise ValueError(f"{name} is empty: nothing is left of it")
        return str(name)[:40], vertices, faces

    try:
        with open("/workspace/script.py", encoding="utf-8") as stream:
            source = stream.read()
        world = {"__name__": "__main__", **shapes.VOCABULARY}
        exec(compile(source, "script.py", "exec"), world)
        wanted = asked["name"]
        if wanted not in world:
            raise NameError(f"the script assigns no {wanted!r}")
        value = world[wanted]
        if wanted == "scene":
            if not isinstance(value, dict) or not value:
                raise TypeError('scene must be a dictionary of solids, like {"a": box(10, 10, 10)}')
            meshes = [arrays(name, solid) for name, solid in value.items()]
        else:
            meshes = [arrays(wanted, value)]
    except BaseException as error:
        reply("error", [], describe(error))
    else:
        reply("ok", meshes)
    while read(channel, 65536):  # the host has all of it when it hangs up
        pass
    leave(0)


if __name__ == "__main__":
    main()
