"""Hermes Agent, by Nous Research."""
