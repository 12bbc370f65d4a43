"""What holds for all tests."""

from hypothesis import HealthCheck, settings

# How fast examples come says how busy the machine is, and nothing about what is tested.
settings.register_profile("pagein", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("pagein")
