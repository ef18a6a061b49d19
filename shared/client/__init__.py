"""How the CLI and other programs use a fleet: send commands, follow events, read the presence of services."""
