"""Which of several pieces of evidence is believed. Pure: the same evidence, the same verdict.

Sources are weighed in the order of `EvidenceSource`. The first that says anything is believed until a later one in that
order overrules it: it says something else, with a later time, and has said so for long enough. Hooks, for example,
report that an agent asks for permission, and nothing when a person presses Escape; its live file then does.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shared.agents.evidence import Evidence, EvidenceSource
from shared.contract.states import Activity

SETTLES_S: Mapping[EvidenceSource, float] = {
    EvidenceSource.HOOKS: 0.0,
    EvidenceSource.LIVE_FILE: 0.0,
    EvidenceSource.TRANSCRIPT: 0.2,
    EvidenceSource.PROCESSES: 0.3,
    EvidenceSource.TITLE: 1.0,
    EvidenceSource.SCREEN: 0.7,
}
"""How long a source must have said the same before it overrules another. A screen is painted in pieces."""

GOES_WITH: frozenset[tuple[Activity, Activity]] = frozenset(
    {
        (Activity.LIMITED, Activity.WAITING),
        (Activity.LIMITED, Activity.NEEDS_APPROVAL),
        (Activity.FAILED, Activity.WAITING),
        (Activity.FAILED, Activity.NEEDS_APPROVAL),
        (Activity.WAITING, Activity.STARTING),
    }
)
"""What is believed, and what says less of the same: a limited agent is at an input box, or a menu about its limit."""

EXCLUDES: frozenset[tuple[Activity, Activity]] = frozenset({(Activity.NEEDS_APPROVAL, Activity.WAITING)})
"""What is believed, and what overrules it even if weak: a dialog stands in the place of the input box."""

TURN_ACTIVITIES = frozenset({Activity.WORKING, Activity.WAITING})
"""Claude Code writes its live file whenever it changes between these, so the file is right about them."""

DIALOG_STANDS_S = 2.0
"""A dialog that is still on the screen this long after another source told of work is open: one tool may end while
another waits for permission."""

NEVER_OVERRULE = frozenset({EvidenceSource.TITLE})
"""Programs set titles as they like."""


@dataclass(frozen=True)
class WeighedEvidence:
    """One piece of evidence, whether it is believed, and why."""

    evidence: Evidence
    believed: bool
    because: str


@dataclass(frozen=True)
class Verdict:
    status: Activity
    winner: Evidence | None
    weighed: tuple[WeighedEvidence, ...]
    again_at: float | None = None
    """When to weigh again, since a source will have said the same for long enough."""

    @property
    def reason(self) -> str:
        return self.winner.why if self.winner is not None else "nothing that can be seen of it tells"


def fuse(evidence: Iterable[Evidence], now: float) -> Verdict:
    """What the agent is doing; `unknown` without evidence."""
    order = list(EvidenceSource)
    winner: Evidence | None = None
    reasons: dict[Evidence, str] = {}
    again: list[float] = []
    for piece in sorted(evidence, key=lambda each: order.index(each.source)):
        if winner is None:
            winner, reasons[piece] = piece, "the first in order that says anything"
            continue
        objection = _objection(winner, piece, now)
        if objection is None:
            reasons[winner] = f"overruled by {piece.source.value}, {_why_overruled(winner, piece)}"
            winner, reasons[piece] = piece, f"overrules {winner.source.value}: {_why_overruled(winner, piece)}"
        else:
            reasons[piece] = objection
            if objection is TOO_SHORT:
                again.append(piece.at + SETTLES_S[piece.source])
            elif objection is MAY_STAND:
                again.append(winner.at + DIALOG_STANDS_S)
    weighed = tuple(WeighedEvidence(piece, piece is winner, because) for piece, because in reasons.items())
    status = winner.says if winner is not None else Activity.UNKNOWN
    return Verdict(status, winner, weighed, min(again, default=None))


TOO_SHORT = "has not said so for long enough yet"
MAY_STAND = "was there before that, and may be about to go"


def _objection(winner: Evidence, piece: Evidence, now: float) -> str | None:
    """Why a piece does not overrule what is believed; None if it does."""
    if piece.says is winner.says:
        return f"agrees with {winner.source.value}"
    if (winner.says, piece.says) in GOES_WITH:
        return f"goes with {winner.says.value}, which says more"
    if _says_more(piece, winner):
        return None
    if winner.source is EvidenceSource.LIVE_FILE and {winner.says, piece.says} <= TURN_ACTIVITIES:
        return "is no reason to doubt the live file, which is written whenever that changes"
    if (winner.weak and not piece.weak) or winner.says is Activity.STARTING:
        return None
    if piece.weak and not winner.weak and (winner.says, piece.says) not in EXCLUDES:
        return f"tells it by what is absent, which is no reason to doubt {winner.source.value}"
    if piece.at <= winner.at and _is_dialog_during_work(piece, winner):
        return None if now - winner.at >= DIALOG_STANDS_S else MAY_STAND
    if piece.at <= winner.at:
        return f"has said so since before {winner.source.value} said {winner.says.value}"
    if piece.source in NEVER_OVERRULE and not winner.weak:
        return f"is no authority against {winner.source.value}"
    if not winner.weak and now - piece.at < SETTLES_S[piece.source]:
        return TOO_SHORT
    return None


def _says_more(piece: Evidence, winner: Evidence) -> bool:
    """Whether a transcript names the error of an agent that another source only sees at its input box.

    Hooks tell of the error themselves.
    """
    is_error = (piece.says, winner.says) in GOES_WITH and piece.says in (Activity.LIMITED, Activity.FAILED)
    is_named = piece.source is EvidenceSource.TRANSCRIPT and not piece.weak
    return is_error and is_named and winner.source is not EvidenceSource.HOOKS


def _is_dialog_during_work(piece: Evidence, winner: Evidence) -> bool:
    asks = piece.source is EvidenceSource.SCREEN and piece.says is Activity.NEEDS_APPROVAL
    return asks and winner.says is Activity.WORKING


def _why_overruled(winner: Evidence, piece: Evidence) -> str:
    if winner.says is Activity.STARTING:
        return "which only says that it was started"
    if _says_more(piece, winner):
        return "which says less of the same"
    if winner.weak and not piece.weak:
        return "which was told by what is absent"
    if piece.at <= winner.at:
        return "since when the dialog still stands"
    return f"{piece.at - winner.at:.1f} s later"
