"""What every service runs on: bootstrap, loop, turn, memory, effects, workers."""
