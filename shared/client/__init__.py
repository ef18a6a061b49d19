"""How people and programs talk to a running fleet: ask, follow, see who is there; by the broker or the journal."""
