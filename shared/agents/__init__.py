"""Agent programs: one folder for each, with all that Muster knows about it. The modules here are what they share."""
