"""Codex (seen with 0.166.0): each turn begins and ends with an event; a call and its result are two lines.

An answer is written when it is complete, and a turn's error with its end. Nothing is written while a person is asked,
or while a request is retried. A subagent's conversation is in a file of its own and may outlast the turn: then the end
of the turn is weak evidence.
"""

import json
from typing import Any

from shared.agents.transcript import Document, texts
from shared.agents.transcript_activity import TURN_ENDED, TranscriptActivity, by_status, call, moment, short
from shared.contract.states import Activity

ASKS = {"request_user_input"}
"""Tools that do nothing but ask a person."""
LIMITS = {"usage_limit_exceeded", "rate_limit_exceeded", "session_budget_exceeded"}
NEEDS_PERSON = {"unauthorized", "model_not_found"}
REFUSED = ("bad_request", "context_window_exceeded")
NO_CREDIT = ("quota exceeded", "insufficient_quota", "out of credits")
"""Called a usage limit too, but no time lifts it."""
SPAWNS = "spawn_agent"


class CodexActivity(TranscriptActivity):
    def __init__(self) -> None:
        super().__init__()
        self._turn: Any = None
        self._spawned = False

    def _take(self, document: Document) -> None:
        when, about = moment(document.get("timestamp")), document.get("payload")
        if when is None or not isinstance(about, dict):
            return
        match document.get("type"):
            case "event_msg":
                self._event(about, when)
            case "response_item":
                self._item(about, when)

    def _event(self, about: Document, when: float) -> None:
        match about.get("type"):
            case "task_started" | "turn_started":
                self._turn, self._spawned = about.get("turn_id"), False
                self._pending.clear()
                self._work(when, "a turn began", "prompt")
            case "item_completed":
                self._completed(about["item"], when)
            case "user_message":  # older versions
                self._work(when, f"took a prompt: {about.get('message')}", "prompt")
            case "task_complete" | "turn_complete" if self._is_current(about):
                self._take_words(str(about.get("last_agent_message") or ""))
                self._complete(about.get("error"), when)
            case "turn_aborted" if self._is_current(about):
                self._end_turn(when, f"its turn was {about.get('reason') or 'interrupted'}", "interrupted")
            case "error":
                self._error(about, when)
            case "stream_error":
                self._work(when, f"the model did not answer, and it tries again: {about.get('message')}", "retry")

    def _is_current(self, about: Document) -> bool:
        return self._turn is None or about.get("turn_id") in (None, self._turn)

    def _completed(self, item: Document, when: float) -> None:
        match item.get("type"):
            case "UserMessage":
                self._work(when, f"took a prompt: {' '.join(texts(item.get('content'), 'text'))}", "prompt")
            case "AgentMessage" | "Reasoning":
                self._work(when, "the model answers", "answer")

    def _complete(self, error: Any, when: float) -> None:
        if isinstance(error, dict):
            self._error(error, when)
        elif self._spawned:
            self._pending.clear()
            self._say(Activity.WAITING, when, "its turn is over, but its subagents may work", TURN_ENDED, weak=True)
        elif not self._has_failed():
            self._end_turn(when, "its turn is over")

    def _error(self, error: Document, when: float) -> None:
        kind = error.get("codex_error_info")
        self._fail(outcome(error), when, str(error.get("message")), kind, refused=kind in REFUSED)

    def _item(self, about: Document, when: float) -> None:
        ident = str(about.get("call_id"))
        match about.get("type"):
            case "function_call" | "custom_tool_call" as kind:
                given = _arguments(about.get("arguments" if kind == "function_call" else "input"))
                self._pending[ident] = call(about["name"], given), about["name"] in ASKS
                self._spawned |= about["name"] == SPAWNS
                self._work(when, "called a tool")
            case "local_shell_call":
                self._pending[ident] = call("local_shell", about.get("action")), False
                self._work(when, "called a tool")
            case "function_call_output" | "custom_tool_call_output":
                self._pending.pop(ident, None)
                self._work(when, "a tool's result went to the model", "tool-result")


def outcome(error: Document) -> Activity:
    """The activity after an error that ended the turn. After an unknown error the next prompt may work."""
    said = str(error.get("message")).lower()
    if any(words in said for words in NO_CREDIT):
        return Activity.FAILED
    match error.get("codex_error_info"):
        case str() as kind if kind in LIMITS:
            return Activity.LIMITED
        case str() as kind if kind in NEEDS_PERSON:
            return Activity.FAILED
        case dict() as kinds if (found := _by_status(kinds)) is not None:
            return found
        case _:
            return Activity.WAITING


def _by_status(kinds: Document) -> Activity | None:
    """`{"response_too_many_failed_attempts": {"http_status_code": 429}}`."""
    statuses = (about.get("http_status_code") for about in kinds.values() if isinstance(about, dict))
    return next((found for found in map(by_status, statuses) if found is not None), None)


def _arguments(given: Any) -> Any:
    try:
        return json.loads(given)
    except (ValueError, TypeError, RecursionError):
        return short(str(given), 100)


READING = CodexActivity
