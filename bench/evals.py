"""Evaluation against its bars: speed, scale, probes. Each part is a module with ``lines()``."""

import importlib
import sys

from bench.harness import report

PARTS = ("bench.evals_speed", "bench.evals_scale", "bench.evals_probes")


def main() -> int:
    return report("evals", [line for name in PARTS for line in importlib.import_module(name).lines()])


if __name__ == "__main__":
    sys.exit(main())
