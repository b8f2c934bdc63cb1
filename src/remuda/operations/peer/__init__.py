"""Live sessions that can be messaged: who is there, how a message reaches them, what becomes of it."""
