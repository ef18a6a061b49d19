"""What a service stands on: turn, loop, poll timer, bootstrap."""
