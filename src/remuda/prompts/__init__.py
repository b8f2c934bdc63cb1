"""Prompt channels: choose one, deliver the prompt through it, byte for byte and in private."""
