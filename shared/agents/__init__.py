"""Agent programs: one folder for each, with all that Muster knows about it, and what they share."""
