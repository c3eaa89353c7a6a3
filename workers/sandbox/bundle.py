"""The agent as bytes: the files of ``workers/sandbox/agent`` under the name ``flywheel_agent``.

``python -s -S -P -B <zip or folder> ...`` starts it; see ``agent/start.py`` for its arguments.
"""

import importlib.util
import io
import marshal
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
    """Uncompressed, with fixed times: the same bytes for every worker of one Python. Each module is there
    compiled too, so that what is forked holds no remains of a compiler; another Python takes the source."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, content in agent_files().items():
            archive.writestr(zipfile.ZipInfo(name), content)
            archive.writestr(zipfile.ZipInfo(f"{name}c"), _compiled(name, content))
    return target.getvalue()


def _compiled(name: str, source: bytes) -> bytes:
    """As in PEP 552, never compared with the source."""
    code = compile(source, name, "exec", dont_inherit=True, optimize=2)
    unchecked = (1).to_bytes(4, "little")
    return importlib.util.MAGIC_NUMBER + unchecked + importlib.util.source_hash(source) + marshal.dumps(code)
