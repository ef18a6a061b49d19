"""What each agent is doing, from all that can be seen of it."""
