"""Programs that talk to a running Flywheel over its public API, and nothing else."""
