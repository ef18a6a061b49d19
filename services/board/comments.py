"""Comments on one card: coalesced, rate limited, silent while monitoring is stopped. Pure.

Each function takes what is remembered of a card and returns what is remembered then, with the comments to publish.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from services.board.memory import CardMemory, StoredComment
from services.board.news import NOTABLE, CardNews
from shared.contract.envelope import Tone, Urgency
from shared.contract.events.board import MUSTER

MOST_IN_A_MINUTE, MOST_IN_AN_HOUR = 10, 40
MOST_ACTIONS_IN_A_MINUTE = 30
"""What a person has to act on passes the usual limits, but not this one."""
KEPT_PER_CARD = 30
KEPT_FOR_S = 7 * 24 * 3600.0
LONGEST_TEXT = 4000
HELD_BACK = "held_back"
DRIFT_OVER = "drift.resolved"
OBSERVED, SAID, STOPPED, RESUMED = "observed", "said", "monitoring_stopped", "monitoring_resumed"
"""The kinds of comments, as their events have them."""
STOP = re.compile(r"stop(?: +monitoring)?[.!]?", re.IGNORECASE)
RESUME = re.compile(r"resume(?: +monitoring)?[.!]?", re.IGNORECASE)


@dataclass(frozen=True)
class Discussion:
    """A card's memory and its last comments; `new` are those to publish."""

    memory: CardMemory
    comments: tuple[StoredComment, ...] = ()
    new: tuple[StoredComment, ...] = ()

    def _with(self, memory: CardMemory, **fields: object) -> "Discussion":
        number = self.memory.comments + 1
        comment = StoredComment(number=number, **fields)  # type: ignore[arg-type]
        notable = self.memory.notable + (comment.urgency in NOTABLE)
        return Discussion(
            replace(memory, comments=number, notable=notable), (*self.comments, comment), (*self.new, comment)
        )

    # --- what Muster observes ---

    def observe(self, news: CardNews, at: float, now: float) -> "Discussion":
        """Take up what happened at a time; `now` counts for the rate limit."""
        memory = self.memory
        if not memory.is_monitored:
            return replace(self, memory=replace(memory, missed=_counted(memory.missed, news.about)))
        if (repeated := self._repeat_of(news)) is not None:
            return repeated
        if not _has_room(memory, news.urgency, now):
            return replace(self, memory=replace(memory, held_back=_counted(memory.held_back, news.about)))
        return self._with(
            _noted(memory, now),
            time=at,
            kind=OBSERVED,
            by=MUSTER,
            text=news.text,
            about=news.about,
            tone=news.tone,
            urgency=news.urgency,
            recorded=news.recorded,
            found=news.found,
            same=news.same,
            ends=news.ends,
        )

    def _repeat_of(self, news: CardNews) -> "Discussion | None":
        """The same with one more repetition, if the newest comment of this kind says the same.

        Not if the drift was over since, or if it may have been: after a time for which there are no comments.
        """
        if not news.same or DRIFT_OVER in self.memory.held_back:
            return None
        for place in reversed(range(len(self.comments))):
            known = self.comments[place]
            is_over = known.ends == news.about or (known.about == news.ends != "")
            if is_over or known.about == HELD_BACK or known.kind == RESUMED:
                return None
            if known.about != news.about:
                continue
            if known.same != news.same:
                return None
            again = replace(known, times=known.times + 1)
            return replace(self, comments=(*self.comments[:place], again, *self.comments[place + 1 :]))
        return None

    def sum_up(self, now: float) -> "Discussion":
        """One comment for those that were held back, as soon as there is room for it."""
        memory = self.memory
        if not memory.held_back or not memory.is_monitored or not _has_room(memory, Urgency.NEWS, now):
            return self
        text = f"held back, because there were too many: {_in_words(memory.held_back)}"
        return self._with(
            _noted(replace(memory, held_back={}), now),
            time=now,
            kind=OBSERVED,
            by=MUSTER,
            text=text,
            about=HELD_BACK,
            tone=Tone.NEUTRAL,
            urgency=Urgency.NEWS,
        )

    # --- what people say ---

    def say(self, text: str, who: str, now: float, is_now: str = "") -> "Discussion":
        """Take up what a person says. `is_now`: what the agent does, for the comment that tells what was missed."""
        text = text.strip()[:LONGEST_TEXT]
        if STOP.fullmatch(text):
            return self._stop(who, now)
        if RESUME.fullmatch(text):
            return self._resume(who, now, is_now)
        return self._with(self.memory, time=now, kind=SAID, by=who, text=text)

    def _stop(self, who: str, now: float) -> "Discussion":
        if not self.memory.is_monitored:
            return self
        stopped = replace(self.memory, stopped_by=who, stopped_at=now, missed=self.memory.held_back, held_back={})
        text = "monitoring stopped: no more comments until somebody comments `resume`"
        return self._with(stopped, time=now, kind=STOPPED, by=who, text=text)

    def _resume(self, who: str, now: float, is_now: str) -> "Discussion":
        memory = self.memory
        if memory.is_monitored:
            return self
        missed = _in_words(memory.missed) if memory.missed else "nothing"
        text = f"monitoring resumed; missed in {_duration(now - memory.stopped_at)}: {missed}"
        resumed = replace(memory, stopped_by="", stopped_at=0.0, missed={}, commented=())
        text += f"; now: {is_now}" if is_now else ""
        return self._with(resumed, time=now, kind=RESUMED, by=who, text=text)

    # --- pruning ---

    def prune(self, now: float) -> "Discussion":
        kept = tuple(each for each in self.comments[-KEPT_PER_CARD:] if now - each.time < KEPT_FOR_S)
        return self if len(kept) == len(self.comments) else replace(self, comments=kept)


def room_at(memory: CardMemory) -> float:
    """When what was held back may be summed up."""
    return max(_free_at(memory.commented, MOST_IN_A_MINUTE, 60.0), _free_at(memory.commented, MOST_IN_AN_HOUR, 3600.0))


def _free_at(times: tuple[float, ...], most: int, window_s: float) -> float:
    return times[-most] + window_s if len(times) >= most else 0.0


def _has_room(memory: CardMemory, urgency: Urgency, now: float) -> bool:
    past = replace(memory, commented=_until(now, memory))
    if urgency is Urgency.ACTION:
        return now >= _free_at(past.commented, MOST_ACTIONS_IN_A_MINUTE, 60.0)
    return now >= room_at(past)


def _noted(memory: CardMemory, now: float) -> CardMemory:
    return replace(memory, commented=(*_until(now, memory), now)[-MOST_IN_AN_HOUR:])


def _until(now: float, memory: CardMemory) -> tuple[float, ...]:
    """Without times in the future: the clock was set back since, and they would hold comments back until then."""
    return tuple(each for each in memory.commented if each <= now)


def _counted(counts: Mapping[str, int], about: str) -> dict[str, int]:
    return {**counts, about: counts.get(about, 0) + 1}


def _in_words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} × {about.rpartition('.')[2]}" for about, count in counts.items())


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
