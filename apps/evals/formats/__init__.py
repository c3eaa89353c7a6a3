"""File formats of suites, one file each: pure functions from bytes to cases.

``read_files`` is the door. Every reader says what it left out and why; ``docs/suites.md`` lists what
maps to what.
"""

from apps.evals.formats.base import Column, Format, Imported, LeftOut, Options, Unreadable, Upload
from apps.evals.formats.detect import FORMATS, read_files

__all__ = [
    "FORMATS",
    "Column",
    "Format",
    "Imported",
    "LeftOut",
    "Options",
    "Unreadable",
    "Upload",
    "read_files",
]
