"""Training of adapters on rollout artifacts. Import the file you need: torch loads there, not here."""
