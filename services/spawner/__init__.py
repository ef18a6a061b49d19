"""The spawner: the only process that starts and ends tmux sessions."""
