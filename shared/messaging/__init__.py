"""How it is said, once and in order: broker, bus, journal, outbox, cursors, intake."""
