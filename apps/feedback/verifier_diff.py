"""What changed between two versions of a verifier, line by line."""

import difflib
import json

from apps.feedback.models import Verifier

_CONTEXT = 3


def as_text(verifier: Verifier) -> str:
    """Kind and parameters, one value a line; texts of several lines are written out."""
    lines = [f"kind: {verifier.kind}"]
    for name in sorted(verifier.params):
        value = verifier.params[name]
        if isinstance(value, str) and "\n" in value:
            lines += [f"{name}:", *(f"  {line}" for line in value.splitlines())]
            continue
        written = json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True)
        lines += f"{name}: {written}".splitlines()
    return "\n".join(lines) + "\n"


def changed_lines(before: Verifier, after: Verifier) -> list[str]:
    """As ``diff -u`` writes them, without the two lines of its head."""
    old, new = as_text(before).splitlines(), as_text(after).splitlines()
    return list(difflib.unified_diff(old, new, n=_CONTEXT, lineterm=""))[2:]
