"""The monitor: what each agent is doing, and what is done about it."""
