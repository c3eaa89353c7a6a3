"""The demo turn: one whole turn of the loop, driven over the public API like a customer would.

``machine`` runs the phases one after the other and keeps what they did in ``DemoTurn.state``:
``collecting``, ``improving`` and ``releasing`` say what is done, ``traffic`` plays the users, ``plan``
holds the figures. A phase does a few seconds of work per call and returns True when it is done; called
again after a worker died, it finds what was made and makes nothing twice. Nothing decides an outcome.
"""
