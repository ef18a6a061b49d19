"""The host's journal, one SQLite file: events, requests, cursors, memory, effects.

A broker's acknowledgement is not durability. An event is in the journal before it is published, a command before it is
carried out, and a cursor moves in the same transaction as what its service did.
"""

from shared.messaging.journal.database import JournalLost
from shared.messaging.journal.journal import Effect, Journal, JournalEntry, JournalReader, Transaction
from shared.messaging.journal.read_access import JournalUnavailable, why_not_writable
from shared.messaging.journal.requests import AnsweredRequest, Request

__all__ = [
    "AnsweredRequest",
    "Effect",
    "Journal",
    "JournalEntry",
    "JournalLost",
    "JournalReader",
    "JournalUnavailable",
    "Request",
    "Transaction",
    "why_not_writable",
]
