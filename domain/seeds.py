"""The seed of one episode, worked out from the run's so that it can be shown and repeated."""

import hashlib
import json


def episode_seed(run_seed: int, task_id: str, sample: int, *, salt: str = "") -> int:
    """A seed of its own for every episode, whichever engine or batch it lands in.

    53 bits, so that an endpoint that reads JSON numbers as doubles gets it whole.
    """
    key = json.dumps([run_seed, task_id, sample, salt]).encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big") >> 11
