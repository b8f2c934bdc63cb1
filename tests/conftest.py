"""Settings for all tests."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings
from tests.postgres import postgres, shared_database, shared_store  # noqa: F401 - fixtures

# The same examples in every run, so that a change is what makes a property fail; REMUDA_EXPLORE=1 looks for
# new ones.
settings.register_profile(
    "remuda",
    deadline=None,
    derandomize=os.environ.get("REMUDA_EXPLORE", "") == "",
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("remuda")

# What a shell starts in the background ignores interrupts, and what nohup starts ignores hangups: so would
# every program that is started here.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
