"""``python -m workers.sandbox``: can programs run here? One JSON object; exit 1 when they cannot."""

import dataclasses
import json
import sys

from workers.sandbox.choice import sandbox_backend
from workers.sandbox.protocol import SandboxUnavailable


def main() -> int:
    try:
        backend = sandbox_backend()
        found = {"backend": backend.name, **dataclasses.asdict(backend.probe())}
    except SandboxUnavailable as unavailable:
        found = {"available": False, "reason": unavailable.reason, "fix": unavailable.fix}
    print(json.dumps(found))
    return 0 if found["available"] else 1


if __name__ == "__main__":
    sys.exit(main())
