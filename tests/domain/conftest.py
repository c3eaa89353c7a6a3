"""Properties are checked without a time limit: a busy machine is no counterexample."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "domain", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("domain")
