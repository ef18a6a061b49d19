"""Access to the machine: tmux, processes, files, locks, logs."""
