"""Hooks: the program that agents run, the spool that it fills, and how agents are configured to run it."""
