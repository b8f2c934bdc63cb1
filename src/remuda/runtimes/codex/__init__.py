"""Codex CLI, by OpenAI."""
