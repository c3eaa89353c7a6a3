"""Collectors of evidence that need more than one call of one function: whole test suites, queries,
linters. Each runs what it must in sandboxes and reports; it judges nothing."""
