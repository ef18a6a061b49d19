"""The contract of the bus: topics, commands, replies, events, states and the service manifest. No I/O."""
