"""Log lines carry ids. Texts of customers travel in task arguments and exceptions, and Celery
likes to print both when something goes wrong; here it may name types and ids only.
"""

import logging
import sys
from collections.abc import Mapping

_FORMAT = "%(asctime)s %(levelname)s %(process)d %(name)s %(message)s"
_LIBRARIES = ("celery", "kombu", "amqp")
_HARMLESS_KEYS = frozenset({"id", "name", "hostname", "runtime"})


class IdsOnly(logging.Filter):
    """Rewrites records of the queue's libraries before anything formats them."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.split(".")[0] in _LIBRARIES:
            if isinstance(record.args, Mapping):
                record.args = {key: _shown(value, key) for key, value in record.args.items()}
            elif isinstance(record.args, tuple):
                record.args = tuple(_shown(value) for value in record.args)
            if not isinstance(record.msg, str) or not record.args:
                # Already filled in, so it cannot be told from a template: its first words only.
                record.msg, record.args = " ".join(str(record.msg)[:60].split()[:6]), ()
            record.msg = " ".join(record.msg.split())  # one line a record
        if record.exc_info and record.exc_info[0]:
            record.msg = f"{record.msg} [{record.exc_info[0].__name__}]"
            record.exc_info = None
        record.exc_text = None
        return True


def install(level: int = logging.INFO) -> None:
    """Make this the only handler of the process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(IdsOnly())
    handler.setFormatter(logging.Formatter(_FORMAT))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)


def _shown(value: object, key: str = "") -> object:
    if isinstance(value, (int, float)) or value is None or key in _HARMLESS_KEYS:
        return value
    return f"<{type(value).__name__}>"
