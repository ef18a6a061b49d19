"""Who talks on the bus: the services that run, and the two kinds of people."""

SERVICES = ("spawner", "reconciler", "registrar", "monitor", "handoff")

PEOPLE = ("viewer", "operator")
"""A viewer reads; an operator may also command."""
