"""What is said on the bus: topics, commands, events, states. No I/O."""
