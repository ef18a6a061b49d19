"""Usage limits: what an agent says of one, which agents it concerns, and what is done about it."""
