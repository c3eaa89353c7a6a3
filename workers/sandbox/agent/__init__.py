"""The program that is the first process of a sandbox, the same in every backend. Standard library only.

It serves one host over one stream of frames: it keeps the workspace's files and runs programs, one
after another. ``workers/sandbox/bundle.py`` packs this folder as ``flywheel_agent``; nothing of the
project is imported here, and nothing here is imported by a worker but ``frames``.
"""
