"""Hooks: what an agent CLI says before and after it acts, and the answers it honours."""
