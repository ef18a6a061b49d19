"""Looking at git remotes: through mirrors of our own, in threads, and nobody waits for one but its own loops."""
