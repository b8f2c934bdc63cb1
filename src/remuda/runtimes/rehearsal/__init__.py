"""The built-in rehearsal agent."""
