"""Git worktrees for runs of their own: made, handed back as a branch, tidied up."""
