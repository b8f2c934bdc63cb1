"""Durable tasks: what they are, where they are kept, who carries them out."""
