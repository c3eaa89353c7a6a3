"""Pages of core, one file per noun: account, project, keys, operations."""
