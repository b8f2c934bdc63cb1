"""Rehearsal: a scripted model that real agent CLIs talk to on loopback, at no cost and with no account."""
