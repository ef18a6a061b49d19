"""The private MQTT broker of a fleet, as a process beside the services."""
