"""One module per verb: typed request in, typed result or events out. Surfaces call nothing else."""
