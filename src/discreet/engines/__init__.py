"""Engines run bounded questions exactly. They see private rows, never noise."""
