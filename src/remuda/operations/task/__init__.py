"""Durable tasks: handed in, looked at, waited for, followed, cancelled."""
