"""Agent CLIs: one contract, one registry, one room per runtime."""
