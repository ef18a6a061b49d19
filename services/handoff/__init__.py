"""Watches git remotes, tells agents of each other's work, and takes loops through their phases."""
