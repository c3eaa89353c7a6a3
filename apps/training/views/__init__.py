"""Pages of training: runs, trajectories, families, verifiers."""
