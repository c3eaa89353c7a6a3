"""Where tokens come from: one HTTP protocol, vLLM's, one client and one embedded server."""
