"""Usage limits: what an agent says of one, whom it concerns, and what is done about it."""
