"""What an algorithm's module makes: parameters, a description, the lines of the right function, changes
of a text in it that make it wrong, and arguments."""

import random
from collections.abc import Callable

from packs.coding.calls import Args

Body = tuple[str, str, str, tuple[tuple[str, str], ...], Callable[[random.Random], Args]]
