"""Checks a runtime's declaration against the installed program: in its own process, without a network."""
