"""How background work is: a copy of the agent's conversation is asked, with a cheap model. The agent is left alone."""
