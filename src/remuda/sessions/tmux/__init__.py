"""Remuda's own tmux server, and how it is spoken to.

``server`` has the operations, one short process each; ``control`` is a connection on which tmux tells by
itself what its panes do.
"""
