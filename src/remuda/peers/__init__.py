"""Live sessions that can be messaged: who they are, and their inboxes."""
