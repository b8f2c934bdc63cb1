"""Pi, the coding agent of earendil-works."""
