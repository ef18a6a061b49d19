"""The situations that an agent can be in, each as data: how a person and the model bring it about, and what is true
of the agent then.
"""

from dataclasses import dataclass

from tests.real_agents.steps import (
    Answer,
    Ask,
    Kill,
    Press,
    Quit,
    Reached,
    Running,
    See,
    Step,
    Still,
    Type,
)

__all__ = [
    "SITUATIONS",
    "Answer",
    "Ask",
    "Kill",
    "Press",
    "Quit",
    "Reached",
    "Running",
    "See",
    "Situation",
    "Step",
    "Still",
    "Type",
]

CLAUDE, CODEX, OPENCODE, GEMINI = "claude", "codex", "opencode", "gemini"
ALL = frozenset({CLAUDE, CODEX, OPENCODE, GEMINI})
SLOW = "DO-BASH touch here.txt && sleep 45"
"""Longer than any recording takes; and it writes, for a mere sleep is asked about by nobody."""


@dataclass(frozen=True)
class Situation:
    """`expected` is the agent's status then. The last sight of the steps is still there when it is recorded."""

    name: str
    expected: str
    steps: tuple[Step, ...]
    clis: frozenset[str] = ALL
    trusted: bool = True
    allowed: bool = False
    """Commands run without anybody being asked."""
    asks: bool = False
    """A person is asked: where a program by itself asks another model first, it is told not to."""
    plans: bool = False
    """It is in plan mode from the start."""
    since: tuple[int, ...] = ()
    """The first version that knows it."""
    before: tuple[int, ...] = ()
    """The first version that does not know it any more."""
    subscribed: bool = True
    """False: the account is billed by use. Only Claude Code tells the two apart by what it is started with."""

    def concerns(self, cli: str, version: str) -> bool:
        number = tuple(map(int, version.split(".")))
        return cli in self.clis and self.since <= number and (not self.before or number < self.before)


HOURS, DAYS = 2 * 3600, 3 * 24 * 3600
"""When a limit lifts: a program names a time of day for the one, and a date for the other."""
ESCAPE, INTERRUPT = Press(("Escape",)), Answer("interrupt")
ASKS_COMMAND = (Ask("DO-BASH touch here.txt"), See("approval-command"), Still())
PRINTS = (Ask("DO-BASH paste banner.txt"), See("answered"), See("quoted-output"), Still())
ASKS_SLOW = (Ask(SLOW), See("approval-command"), Still())


def _limit(claim: str, clis: frozenset[str], *after: Step, name: str = "", reset_s: int = HOURS) -> Situation:
    steps = (Ask(f"DO-LIMIT {claim} {reset_s}"), See("limit"), Still(), *after)
    return Situation(f"limit-{name or claim}", "limited", steps, clis)


def _lifted(claim: str, clis: frozenset[str]) -> Situation:
    limited = (Ask(f"DO-LIMIT {claim} 1"), See("limit"), Still(), Answer("dismiss"), Still())
    return Situation("limit-lifted", "waiting", (*limited, Ask("hello"), See("answered"), Still(), See("limit")), clis)


SITUATIONS = (
    Situation("fresh", "waiting", (Still(),)),
    Situation("thinking", "working", (Ask("DO-THINK 60"), See("busy"))),
    Situation("reasoning", "working", (Ask("DO-REASON 60"), Reached(), See("busy"))),
    Situation("streaming", "working", (Ask("DO-STREAM 60"), See("streaming"))),
    Situation("tool", "working", (Ask(SLOW), Running(), See("busy")), allowed=True),
    Situation("approval-command", "needs_approval", ASKS_COMMAND, asks=True),
    Situation(
        "approval-edit",
        "needs_approval",
        (Ask("DO-EDIT x.txt"), See("approval-edit"), Still()),
        ALL - {CODEX},
        asks=True,
    ),
    # Codex writes in its directory without asking.
    Situation(
        "approval-edit",
        "needs_approval",
        (Ask("DO-EDIT /opt/x.txt"), See("approval-edit"), Still()),
        frozenset({CODEX}),
    ),
    Situation("question", "needs_approval", (Ask("DO-QUESTION"), See("question"), Still()), ALL - {CODEX}),
    # Codex has its question tool in plan mode only.
    Situation(
        "question",
        "needs_approval",
        (Press(("BTab",)), Still(), Ask("DO-QUESTION"), See("question"), Still()),
        frozenset({CODEX}),
    ),
    Situation(
        "plan",
        "needs_approval",
        (Ask("DO-PLAN"), See("plan"), Still()),
        frozenset({CLAUDE}),
        plans=True,
    ),
    # opencode asks nobody whether a directory is to be trusted.
    Situation("trust", "needs_approval", (See("trust"), Still()), ALL - {OPENCODE}, trusted=False),
    Situation("rejected", "waiting", (*ASKS_COMMAND, ESCAPE, See("rejected"), Still()), asks=True),
    Situation("rejected-no", "waiting", (*ASKS_COMMAND, Answer("no"), See("rejected"), Still()), asks=True),
    Situation("approved", "working", (*ASKS_SLOW, Answer("approve"), Running(), See("busy")), asks=True),
    Situation("interrupted-early", "waiting", (Ask("DO-THINK 60"), Reached(), See("busy"), INTERRUPT, Still())),
    Situation(
        "interrupted-late", "waiting", (Ask("DO-STREAM 60"), See("streaming"), INTERRUPT, See("interrupted"), Still())
    ),
    Situation("interrupted-tool", "waiting", (Ask(SLOW), Running(), See("busy"), INTERRUPT, Still()), allowed=True),
    Situation("done", "waiting", (Ask("hello"), See("answered"), Still())),
    Situation(
        "steps",
        "working",
        (Ask("DO-BASH expr 5000 + 66 THEN DO-BASH expr 5000 + 77 THEN DO-THINK 60"), See("steps"), See("busy")),
        allowed=True,
    ),
    Situation("typed", "waiting", (Type("half a thought"), See("typed"), Still())),
    # Limits. The first of Claude Code's opens a menu.
    _limit("five_hour", frozenset({CLAUDE})),
    _limit("five_hour", frozenset({CLAUDE}), ESCAPE, Still(), See("limit"), name="five_hour-dismissed"),
    _limit("seven_day", frozenset({CLAUDE}), reset_s=DAYS),
    _limit("seven_day", frozenset({CLAUDE}), ESCAPE, Still(), See("limit"), name="seven_day-dismissed", reset_s=DAYS),
    _limit("seven_day_opus", frozenset({CLAUDE}), reset_s=DAYS),
    _limit("overage", frozenset({CLAUDE})),
    Situation(
        "limit-api", "limited", (Ask("DO-LIMIT"), See("limit-api"), Still()), frozenset({CLAUDE}), subscribed=False
    ),
    # A warning that the budget is nearly spent (DO-NEAR) is not shown for an account such as the scripted one.
    _limit("usage", frozenset({CODEX})),
    _limit("usage", frozenset({CODEX}), name="usage-days", reset_s=DAYS),
    Situation("limit-account", "limited", (Ask("DO-LIMIT"), See("limit")), frozenset({OPENCODE})),
    _limit("per_day", frozenset({GEMINI})),
    _limit("per_day", frozenset({GEMINI}), Answer("dismiss"), Still(), name="per_day-dismissed"),
    # A spent minute is waited out by the program itself, within seconds: that is work, not a limit.
    Situation(
        "retrying-quota", "working", (Ask("DO-LIMIT per_minute 20"), Reached(), See("busy")), frozenset({GEMINI})
    ),
    _lifted("five_hour", frozenset({CLAUDE, CODEX})),
    _lifted("per_day", frozenset({GEMINI})),
    # opencode goes on by itself when its limit lifts, and the words are gone then.
    # Failures.
    Situation("retrying", "working", (Ask("DO-OVERLOAD 30"), See("retrying"))),
    Situation("auth-failure", "failed", (Ask("DO-AUTH"), See("auth"), Still())),
    Situation(
        "credit", "failed", (Ask("DO-CREDIT"), See("credit"), Still()), ALL - {GEMINI}, subscribed=False
    ),  # Gemini CLI with a key has a quota, and no credit
    # Subagents.
    Situation(
        "subagent", "working", (Ask("DO-AGENT DO-THINK 60 THEN DO-WAIT"), Reached(2), See("subagent")), asks=True
    ),
    # The main agent need not wait for what it has started: its own turn is over, and the subagent works on.
    Situation(
        "subagent-background",
        "working",
        (Ask("DO-BACKGROUND DO-THINK 60"), Reached(2), See("answered")),
        frozenset({CLAUDE, CODEX}),
        asks=True,
    ),
    Situation(
        "subagent-approval",
        "needs_approval",
        (Ask("DO-AGENT DO-BASH touch here.txt"), See("approval-command")),  # with a clock that goes on
        asks=True,
    ),
    # Claude Code asks another model about a command, and a person where that can't be reached.
    Situation(
        "approval-unchecked",
        "needs_approval",
        (Ask("DO-AGENT DO-THINK 60"), See("unchecked"), Still()),
        frozenset({CLAUDE}),
        since=(2, 1, 325),
    ),
    # What is only quoted.
    Situation("quoted-limit", "waiting", (Ask("DO-QUOTE limit"), See("quoted-limit"), Still())),
    Situation("quoted-dialog", "waiting", (Ask("DO-QUOTE dialog"), See("quoted-dialog"), Still())),
    Situation("quoted-working", "waiting", (Ask("DO-QUOTE working"), See("quoted-working"), Still())),
    Situation("quoted-output", "waiting", PRINTS, ALL - {CLAUDE}, allowed=True),
    # Newer ones of Claude Code say that a command was run, and nothing of what it printed.
    Situation("quoted-output", "waiting", PRINTS, frozenset({CLAUDE}), allowed=True, before=(2, 1, 325)),
    # Ends.
    Situation("exit", "done", (Ask("hello"), See("answered"), Still(), Quit())),
    Situation("killed", "failed", (Ask("DO-STREAM 60"), See("streaming"), Kill())),
)
