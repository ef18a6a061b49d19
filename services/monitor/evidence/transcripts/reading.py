"""What a transcript says of its agent so far: the frame that each format fills, and what all of them share."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

from services.monitor.evidence.evidence import Evidence, LimitSaid, Source
from services.monitor.evidence.last_words import promise_in, trouble_in
from shared.states import Activity, Trouble
from shared.transcripts.entry import at, tool_call

Document = dict[str, Any]

LATE_S = 10.0
"""Agents write some lines out of order. One that is earlier than this is no late one: the clock was set back."""
CUT_AT = 300
WORDS_AT_MOST = 2_000
REFUSED_FOR_GOOD = 2
TURN_ENDED, ERROR, PENDING, QUESTION = "turn-ended", "error", "tool-pending", "question"
PROMPT = "prompt"


class Reading(ABC):
    """Takes the lines of one conversation in turn. Pure: the same lines, the same claim.

    A claim's time is that of the last line that says so: what an agent wrote later tells more than what was told of it
    earlier. While a tool runs, nothing is written, and nothing tells whether it runs or a person is asked first: then
    the claim is weak.
    """

    def __init__(self) -> None:
        self._claim: Evidence | None = None
        self._promise = ""
        """Until when it waits, by what it said last."""
        self._refused = 0
        """How many turns in a row ended because the conversation itself was refused."""
        self._pending: dict[str, tuple[str, bool]] = {}
        """The tools that were called and have no result yet: what each was called for, and whether it asks a person."""

    def take(self, document: Document) -> None:
        """Take one line. One that is not what was measured says nothing."""
        try:
            self._take(document)
        except (TypeError, AttributeError, KeyError, ValueError, RecursionError):
            return

    @abstractmethod
    def _take(self, document: Document) -> None: ...

    def claim(self) -> Evidence | None:
        return self._claim

    def _say(self, says: Activity, when: float, why: str, rule: str = "", *, weak: bool = False) -> None:
        if rule == PROMPT:
            self._promise = ""
        if not self._is_late(when):
            promise = self._promise if says is Activity.WAITING else ""
            self._claim = Evidence(Source.TRANSCRIPT, says, when, short(why), rule, weak, promise=promise)

    def _hear(self, words: str) -> None:
        """Take in what the agent itself says."""
        self._promise = promise_in(words)
        if words:
            self._refused = 0

    def _is_late(self, when: float) -> bool:
        return self._claim is not None and 0.0 < self._claim.at - when < LATE_S

    def _work(self, when: float, why: str, rule: str = "") -> None:
        """It works; on what, where a tool was called. Some tools do nothing but ask."""
        question = next((called for called, asks in self._pending.values() if asks), None)
        if question is not None:
            self._say(Activity.NEEDS_APPROVAL, when, f"asks a question: {question}", QUESTION)
        elif self._pending:
            *_, (called, _) = self._pending.values()
            self._say(Activity.WORKING, when, f"called {called}, which has no result yet", PENDING, weak=True)
        else:
            self._say(Activity.WORKING, when, why, rule)

    def _end_turn(self, when: float, why: str, rule: str = TURN_ENDED) -> None:
        self._pending.clear()
        self._say(Activity.WAITING, when, why, rule)

    def _fail(
        self,
        says: Activity,
        when: float,
        why: str,
        *kind: object,
        resets_at: float | None = None,
        refused: bool = False,
    ) -> None:
        """The turn ended with an error. What says no more than that it ended may stand before it.

        A conversation that is refused twice in a row would be refused again.
        """
        self._pending.clear()
        self._promise = ""
        self._refused = self._refused + 1 if refused else 0
        if self._refused >= REFUSED_FOR_GOOD:
            says = Activity.FAILED
        if self._claim is not None and self._claim.rule == TURN_ENDED and self._is_late(when):
            when = self._claim.at
        self._say(says, when, why or "the model answered with an error", ERROR)
        if self._claim is not None and says is Activity.LIMITED:
            limit = LimitSaid(when, short(why, WORDS_AT_MOST), resets_at=resets_at)
            self._claim = replace(self._claim, limit=limit)
        elif self._claim is not None and says is Activity.FAILED:
            trouble = Trouble.SESSION if self._refused >= REFUSED_FOR_GOOD else trouble_in(why, *kind)
            self._claim = replace(self._claim, trouble=trouble)

    def _has_failed(self) -> bool:
        return self._claim is not None and self._claim.rule == ERROR


def moment(stamp: Any) -> float | None:
    """A time as transcripts write it, in seconds since 1970."""
    found = at(stamp)
    return found.timestamp() if found is not None else None


def call(name: Any, arguments: Any) -> str:
    """A tool call in a few words: `Bash: touch x`."""
    told = tool_call(str(name), arguments, time=None, call="")
    return short(f"{told.tool}: {told.text}" if told.text else told.tool, 120)


def short(text: str, most: int = CUT_AT) -> str:
    words = " ".join(text[: most * 4].split())
    return words if len(words) <= most else f"{words[: most - 1]}…"


def by_status(status: Any) -> Activity | None:
    """What an HTTP status means for the agent: it is limited, or can't go on by itself."""
    match status:
        case 429:
            return Activity.LIMITED
        case 401 | 402 | 403:
            return Activity.FAILED
        case _:
            return None
