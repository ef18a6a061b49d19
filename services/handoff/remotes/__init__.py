"""Watching git remotes: through mirrors of our own, in threads; a slow remote delays only its own loops."""
