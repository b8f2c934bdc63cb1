"""Judges tool calls before they run. Pure: nothing here does any I/O but the path observer."""
