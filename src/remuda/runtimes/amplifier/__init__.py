"""Amplifier, by Microsoft."""
