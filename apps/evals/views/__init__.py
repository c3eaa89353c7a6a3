"""Pages of evals, one file per noun."""
