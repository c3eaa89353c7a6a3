"""Benchmarks: ratios against a named peer or bound, measured in one run, printed last."""
