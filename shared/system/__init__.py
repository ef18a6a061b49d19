"""The machine: tmux, processes, files, locks, logs."""
