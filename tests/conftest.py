"""Settings for all tests."""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings
from tests.postgres import postgres, shared_database, shared_store  # noqa: F401 - fixtures

settings.register_profile("remuda", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("remuda")

# What a shell starts in the background ignores interrupts, and what nohup starts ignores hangups: so would
# every program that is started here.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
