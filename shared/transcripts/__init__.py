"""The transcripts that agents keep themselves: found by workspace or conversation, and read in the same words.

Nothing here writes, and nothing raises for what a file holds: agents change their formats, and are writing them.
"""

from collections.abc import Mapping

from shared.transcripts import claude, codex, gemini, opencode
from shared.transcripts.entry import Entry, Reader, Who, same_prompt

READERS: Mapping[str, Reader] = {
    "claude": claude.READER,
    "codex": codex.READER,
    "gemini": gemini.READER,
    "opencode": opencode.READER,
}

__all__ = ["READERS", "Entry", "Reader", "Who", "same_prompt"]
