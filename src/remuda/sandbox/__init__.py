"""Walls around a whole agent: profiles, the engines that enforce them, what each runtime needs inside."""
