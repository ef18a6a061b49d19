"""Delivers commands and events once and in order: broker, bus, inbox, intake, journal, outbox, cursors, presence."""
