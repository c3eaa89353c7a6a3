"""What benchmarks compare with, where a library alone is not the peer."""
