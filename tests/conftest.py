"""What holds for all tests."""

from hypothesis import HealthCheck, settings

# How fast examples come says how busy the machine is, and nothing about what is tested.
settings.register_profile("pagein", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# `make test` tries the same examples each time, so that what lands does not hang on luck; new ones are looked for by
# `make fuzz`, and by each plain run of pytest.
settings.register_profile("same", settings.get_profile("pagein"), derandomize=True)
settings.load_profile("pagein")
