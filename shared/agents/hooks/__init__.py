"""Hooks: the program that agents call, the spool that it fills, and how agents are made to call it."""
