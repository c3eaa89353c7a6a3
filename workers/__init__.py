"""Muscle: engines, sandboxes, episodes and training. No database, no web framework."""
