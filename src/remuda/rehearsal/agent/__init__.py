"""The rehearsal agent: a tiny but real coding-agent CLI, so that a demo and a test need nothing else."""
