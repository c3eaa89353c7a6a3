"""Pure rules: no clock, no I/O, no framework. Randomness is always an argument."""
