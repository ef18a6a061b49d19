"""What an agent's hooks tell, of the main agent and of each subagent apart. Pure.

Claude Code, Codex and Gemini CLI call hooks at the same moments, under different names. What hooks do not tell (Escape
on a dialog, Escape while it thinks, a kill) other sources do; their later evidence overrules.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from shared.agents.evidence import Evidence, EvidenceSource, LimitStatement
from shared.agents.last_words import NO_LIMIT, promise_in, trouble_in
from shared.contract.states import Activity, Trouble
from shared.runtime.memory import MemoryTable
from shared.system.processes import Process

MAIN = ""

URGENCY = (
    *(Activity.NEEDS_APPROVAL, Activity.WORKING, Activity.LIMITED, Activity.FAILED),
    *(Activity.STALLED, Activity.STARTING, Activity.WAITING, Activity.DONE, Activity.UNKNOWN),
)
"""A session does what the first of its main agent and subagents in this order does."""

ASKING_TOOLS = ("AskUserQuestion", "ExitPlanMode", "ask_user", "request_user_input")
"""Tools whose use is a question to a person."""

ENDED_BY: Mapping[str, Activity] = {
    "rate_limit": Activity.LIMITED,
    "authentication_failed": Activity.FAILED,
    "oauth_org_not_allowed": Activity.FAILED,
    "billing_error": Activity.FAILED,
}
"""What the errors of `StopFailure` mean; after any other, the agent waits for another prompt."""

GOES_ON = ("clear", "resume", "fork")
"""Why a conversation may end while its program goes on with another."""
REASON_CHARACTERS, BANNER_CHARACTERS = 300, 2_000
REFUSED, REFUSED_FOR_GOOD = "invalid_request", 2
"""A conversation that is refused this often in a row is refused for good."""
ENDS_TURN = ("Stop", "StopFailure", "AfterAgent")


@dataclass(frozen=True)
class HookActor:
    """The main agent, or one subagent."""

    says: Activity
    at: float
    why: str
    command: str = ""
    """The command that it runs, or asks permission for."""
    banner: str = ""
    """The text of the limit or error that ended its turn."""
    trouble: Trouble | None = None
    promise: str = ""
    """Until when it waits, by its last words."""


@dataclass(frozen=True)
class HookState:
    """All that hooks have told of one session."""

    conversation: str = ""
    parts: Mapping[str, HookActor] = field(default_factory=dict)
    """The main agent and each subagent, by agent id."""
    pid: int = 0
    """The process that called."""
    refused: int = 0
    """How many turns in a row ended because the conversation itself was refused."""

    def evidence(self) -> Evidence | None:
        """What the session does: what its most urgent part does."""
        if not self.parts:
            return None
        name, part = min(self.parts.items(), key=lambda each: (URGENCY.index(each[1].says), -each[1].at))
        why = f"subagent {name}: {part.why}" if name else part.why
        limit = LimitStatement(part.at, part.banner) if part.says is Activity.LIMITED else None
        return Evidence(
            EvidenceSource.HOOKS,
            part.says,
            part.at,
            why,
            part=name,
            limit=limit,
            trouble=part.trouble,
            promise=part.promise,
        )

    def clamped(self, now: float) -> "HookState":
        """The same with no time later than now: the clock may have been set back."""
        if all(part.at <= now for part in self.parts.values()):
            return self
        return replace(self, parts={name: replace(part, at=min(part.at, now)) for name, part in self.parts.items()})

    def without(self, names: Iterable[str]) -> "HookState":
        """Without the parts of which another source has shown otherwise since."""
        gone = frozenset(names)
        return replace(self, parts={name: part for name, part in self.parts.items() if name not in gone})

    @property
    def asked_for(self) -> HookActor | None:
        """The part that asked last for permission to run a command, and still does."""
        asking = [part for part in self.parts.values() if part.says is Activity.NEEDS_APPROVAL and part.command]
        return max(asking, key=lambda part: part.at, default=None)

    @property
    def said_goodbye(self) -> bool:
        main = self.parts.get(MAIN)
        return main is not None and main.says is Activity.DONE

    @property
    def subagents(self) -> dict[str, Activity]:
        return {name: part.says for name, part in self.parts.items() if name != MAIN}


@dataclass(frozen=True)
class HookMemory:
    """What hooks told of one session, and the program that called them."""

    spawn: str
    state: HookState = field(default_factory=HookState)
    process: Process | None = None


HOOKS = MemoryTable("hooks:", HookMemory)


def take(known: HookState, payload: Mapping[str, Any], at: float, pid: int = 0) -> HookState:
    """The state after one more call of a hook, by the process `pid`. A repeated or older call changes nothing."""
    event, conversation = _text(payload.get("hook_event_name")), _text(payload.get("session_id"))
    if conversation and known.conversation and conversation != known.conversation:
        if not (pid and pid == known.pid) and not _begins(event, payload):
            return known  # from another program: an agent may run one of its own kind
        known = HookState()
    known = replace(known, conversation=conversation or known.conversation, pid=pid or known.pid)
    name = _text(payload.get("agent_id"))
    before = known.parts.get(name)
    if before is not None and before.at > at:
        return known
    if event == "Interrupt":  # it ends the subagents' work too
        return replace(known, parts={MAIN: HookActor(Activity.WAITING, at, "it was interrupted")})
    if event == "SubagentStop":
        return replace(known, parts={each: part for each, part in known.parts.items() if each != name or not name})
    if event in ENDS_TURN and name == MAIN:
        known = replace(known, refused=known.refused + 1 if payload.get("error") == REFUSED else 0)
    part = _part(event, payload, at)
    if part is not None and known.refused >= REFUSED_FOR_GOOD and event == "StopFailure":
        part = replace(part, says=Activity.FAILED, trouble=Trouble.SESSION)
    if _is_known(event, payload, known):
        return known
    return known if part is None else replace(known, parts={**known.parts, name: part})


def _is_known(event: str, payload: Mapping[str, Any], known: HookState) -> bool:
    """Whether a notice repeats what is known. Claude sends one some time after a dialog opened or a turn ended."""
    if event != "Notification":
        return False
    doing = [part.says for part in known.parts.values()]
    match payload.get("notification_type"):
        case "permission_prompt":
            return Activity.NEEDS_APPROVAL in doing
        case "idle_prompt":
            return Activity.WAITING in doing or Activity.LIMITED in doing
    return False


def _begins(event: str, payload: Mapping[str, Any]) -> bool:
    """Whether the same program goes on with another conversation. Another program starts with `startup`."""
    return event == "SessionStart" and payload.get("source") in GOES_ON


def _part(event: str, payload: Mapping[str, Any], at: float) -> HookActor | None:
    tool, doing = _text(payload.get("tool_name")), _doing(payload)
    match event:
        case "SessionStart":
            source = _text(payload.get("source")) or "startup"
            # A conversation is compacted in the middle of the work.
            return None if source == "compact" else HookActor(Activity.WAITING, at, f"its session began ({source})")
        case "UserPromptSubmit" | "BeforeAgent":
            return HookActor(Activity.WORKING, at, "a prompt was sent to it")
        case "PreToolUse" | "BeforeTool" if tool in ASKING_TOOLS:
            return HookActor(Activity.NEEDS_APPROVAL, at, f"it asks a question ({tool})")
        case "PreToolUse" | "BeforeTool":
            return HookActor(Activity.WORKING, at, f"it uses {doing}", _command(payload))
        case "PermissionRequest":
            return HookActor(Activity.NEEDS_APPROVAL, at, f"it asks for permission: {doing}", _command(payload))
        case "PostToolUse" | "PostToolUseFailure" | "AfterTool" | "PermissionDenied":
            return HookActor(Activity.WORKING, at, f"it has used {tool}")
        case "PreCompact" | "PreCompress":
            return HookActor(Activity.WORKING, at, "it makes its conversation shorter")
        case "SubagentStart":
            return HookActor(Activity.WORKING, at, f"it was started ({_text(payload.get('agent_type')) or 'subagent'})")
        case "Notification":
            return _notified(payload, at)
        case "Stop" | "AfterAgent":
            said = _text(payload.get("last_assistant_message")) or _text(payload.get("prompt_response"))
            return HookActor(Activity.WAITING, at, "its turn ended", promise=promise_in(said))
        case "StopFailure":
            return _failure(payload, at)
        case "SessionEnd" if payload.get("reason") not in GOES_ON:
            return HookActor(
                Activity.DONE, at, f"its session ended ({_text(payload.get('reason')) or 'no reason given'})"
            )
    return None


def _notified(payload: Mapping[str, Any], at: float) -> HookActor | None:
    said = _text(payload.get("message"))
    match payload.get("notification_type"):
        case "permission_prompt" | "ToolPermission" | "elicitation_dialog":
            return HookActor(
                Activity.NEEDS_APPROVAL, at, f"it asks for permission: {_doing(payload) or said}"[:REASON_CHARACTERS]
            )
        case "idle_prompt":
            return HookActor(Activity.WAITING, at, "it waits for a prompt")
    return None


def _failure(payload: Mapping[str, Any], at: float) -> HookActor:
    error = _text(payload.get("error")) or "unknown"
    said = _text(payload.get("last_assistant_message")) or _text(payload.get("error_details"))
    why = f"its turn ended with {error}" + (f": {said}" if said else "")
    says = ENDED_BY.get(error, Activity.WAITING) if not NO_LIMIT.search(said) else Activity.WAITING
    trouble = trouble_in(error, said) if says is Activity.FAILED else None
    return HookActor(says, at, why[:REASON_CHARACTERS], banner=said[:BANNER_CHARACTERS], trouble=trouble)


def _doing(payload: Mapping[str, Any]) -> str:
    """A tool and what it is used for."""
    tool, given = _text(payload.get("tool_name")), payload.get("tool_input")
    found = given if isinstance(given, Mapping) else {}
    about = next((_text(found[key]) for key in ("command", "cmd", "file_path", "path", "url") if found.get(key)), "")
    return " ".join(f"{tool}: {about}".split())[:REASON_CHARACTERS] if about else tool


def _command(payload: Mapping[str, Any]) -> str:
    given = payload.get("tool_input")
    found = given.get("command") or given.get("cmd") if isinstance(given, Mapping) else ""
    return " ".join(map(str, found)) if isinstance(found, list) else _text(found)


def _text(found: Any) -> str:
    return found if isinstance(found, str) else ""
