"""Aider."""
