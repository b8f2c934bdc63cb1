"""Which agent gets a prompt, and whether it may."""
