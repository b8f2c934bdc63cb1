"""Reads a shell's language: a grammar, and an interpreter that tells what a text may do."""
