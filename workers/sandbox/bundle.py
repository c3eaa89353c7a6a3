"""The agent as bytes: the files of ``workers/sandbox/agent`` under the name ``flywheel_agent``.

``python -s -S -P -B <zip or folder> ...`` starts it; see ``agent/start.py`` for its arguments.
"""

import io
import zipfile
from functools import lru_cache
from pathlib import Path

PACKAGE = "flywheel_agent"
# At the bottom of the stack, so that a program which was forked stands where it would by itself.
_MAIN = b"from flywheel_agent.start import main\nprogram = main()\nif program:\n    program()\n"


@lru_cache(maxsize=1)
def agent_files() -> dict[str, bytes]:
    """Content by path."""
    folder = Path(__file__).with_name("agent")
    files = {f"{PACKAGE}/{path.name}": path.read_bytes() for path in sorted(folder.glob("*.py"))}
    return {"__main__.py": _MAIN, **files}


@lru_cache(maxsize=1)
def agent_zip() -> bytes:
    """Uncompressed, with fixed times: the same bytes on every host."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, content in agent_files().items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return target.getvalue()
