"""Watches git remotes through our own mirrors, in threads: a slow remote delays only its own loops."""
