"""Running agents: one session is one run."""
