"""Runs inside a sandbox of its own, without the answer: measures meshes that other sandboxes made.

The meshes are only numbers, but numbers of a stranger: they are measured under limits, and what
comes out is one line of JSON.
"""

from typing import Any


def main() -> None:
    import json
    import os
    import sys

    sys.path.insert(0, "/workspace")
    import measuring  # type: ignore[import-not-found]
    import numpy as np

    channel = int(os.environ.pop("FLYWHEEL_CHANNEL"))
    with open(channel, "rb", closefd=False) as reader:
        asked = json.loads(reader.readline())

    def load(name: str, sizes: list[tuple[str, int, int]]) -> list[tuple[str, Any, Any]]:
        meshes = []
        with open(f"/workspace/{name}.mesh", "rb") as stream:
            for label, vertices, faces in sizes:
                points = np.frombuffer(stream.read(24 * vertices), "<f8").reshape(-1, 3)
                corners = np.frombuffer(stream.read(12 * faces), "<u4").reshape(-1, 3).astype(np.int64)
                meshes.append((label, points, corners))
        return meshes

    if asked["what"] == "part":
        answer = load("answer", asked["answer"])[0][1:]
        target = load("reference", asked["reference"])[0][1:] if asked["reference"] else None
        found = measuring.part(answer, target)
    else:
        found = measuring.scene(load("answer", asked["answer"]), load("reference", asked["reference"]))
    with open(channel, "wb", closefd=False) as writer:
        writer.write(json.dumps({"nonce": asked["nonce"], "found": found}, allow_nan=False).encode() + b"\n")
    while os.read(channel, 65536):  # the host has all of it when it hangs up
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
