"""The host's journal: what was said, what was asked, and how far everybody has read. SQLite, one file per host.

A broker's acknowledgement is not durability. An event is in here before it is published, a command before it is
carried out, and a reader's place moves in the same transaction as what it did.
"""

from shared.messaging.journal.database import JournalUnavailable
from shared.messaging.journal.journal import Effect, Journal, JournalEntry, Transaction
from shared.messaging.journal.requests import Request

__all__ = ["Effect", "Journal", "JournalEntry", "JournalUnavailable", "Request", "Transaction"]
