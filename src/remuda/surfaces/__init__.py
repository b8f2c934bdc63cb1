"""Projections of the operations for people, programs and agents; no logic of their own."""
