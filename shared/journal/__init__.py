"""The host's journal: what was said, what was asked, and how far everybody has read. SQLite, one file per host.

A broker's acknowledgement is not durability. An event is in here before it is published, a command before it is
carried out, and a reader's place moves in the same transaction as what it did.
"""

from shared.journal.database import JournalUnavailable
from shared.journal.journal import Entry, Journal, Transaction
from shared.journal.requests import Request

__all__ = ["Entry", "Journal", "JournalUnavailable", "Request", "Transaction"]
