"""Health checks: a copy of an agent's conversation is asked how the work is. The agent itself never learns of it."""
