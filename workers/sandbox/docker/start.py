"""The first process of a container: our own system call filter around the agent, then the agent.

Docker's form of the filter cannot deny calls that it has no name for; this one does. Runs inside, from
a file beside ``agent.zip``; the standard library alone is there.
"""

import sys

FOLDER = "/opt/flywheel"
START, FILTER = f"{FOLDER}/start.py", f"{FOLDER}/filter"

if __name__ == "__main__":
    # No function around it: a program that is forked from here stands at the bottom of the stack.
    sys.path.insert(0, f"{FOLDER}/agent.zip")
    from flywheel_agent.kernel import Seccomp  # type: ignore[import-not-found]
    from flywheel_agent.start import main  # type: ignore[import-not-found]

    with open(FILTER, "rb") as stream:
        Seccomp(stream.read()).install()
    program = main()
    if program:
        program()
