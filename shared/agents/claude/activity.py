"""Claude Code (seen with 2.1.197 and 2.1.325): a line for each prompt, each block of an answer, each tool result.

An answer is written when it is complete, and a turn's duration when it is over; in the first turn the duration comes
first. An interruption before any output leaves no line. A turn may end before its subagents do: then they are counted,
and a notification is written for each that ends.
"""

import re
from dataclasses import replace
from typing import Any

from shared.agents.last_words import NO_LIMIT
from shared.agents.transcript import Document, texts
from shared.agents.transcript_activity import (
    LONGEST_LIMIT_WORDS,
    TranscriptActivity,
    by_status,
    call,
    moment,
    short,
)
from shared.contract.states import Activity

INTERRUPTED = "[Request interrupted by user"
REJECTED = "The user doesn't want to proceed with this tool use"
STOPS = "STOP what you are doing"
"""A rejection with these words ends the turn; one with instructions for the agent does not."""
NOT_PROMPTS = ("<command-", "<local-command-", "<bash-", "<system-reminder>", "Caveat: ")
"""Traces of commands. A command that asks the model something shows by its answer."""
GOES_ON = "Stop hook feedback"
MAIN = "repl_main_thread"
"""The source of a request to the model, if it is the agent itself."""
CONTINUES = re.compile(r"(?i)\b(?:continuing automatically|automatic continue)\b")
RESUMED = "Usage limit reset"
NOTIFIED = "<task-notification>"
LAUNCHED = "Async agent launched"
ENDS = {"end_turn", "stop_sequence", "refusal"}
ASKS = {"AskUserQuestion", "ExitPlanMode"}
"""Tools that do nothing but ask a person."""
LIMIT = re.compile(r"You will regain access on ")
REFUSED = "invalid_request"
NEEDS_PERSON = {
    "authentication_failed",
    "oauth_org_not_allowed",
    "account_on_hold",
    "verification_required",
    "billing_error",
    "model_not_found",
}


class ClaudeActivity(TranscriptActivity):
    def __init__(self) -> None:
        super().__init__()
        self._background = 0
        """How many subagents run in the background."""

    def _take(self, document: Document) -> None:
        when = moment(document.get("timestamp"))
        if when is None or document.get("isSidechain"):
            return
        match document.get("type"):
            case "user":
                self._user(document, when)
            case "assistant" if document.get("isApiErrorMessage"):
                self._error(document, when)
            case "assistant":
                self._assistant(document["message"], when)
            case "system":
                self._system(document, when)
            case "api-request" if str(document.get("querySource")).startswith(MAIN):
                self._pending.clear()
                self._work(when, "asked the model", "request")

    def _error(self, line: Document, when: float) -> None:
        said, kind = " ".join(texts(line["message"]["content"], "text")), line.get("error")
        quota = line.get("quotaLimits")
        resets_at = quota.get("resetsAt") if isinstance(quota, dict) else None
        self._fail(
            outcome(line.get("apiErrorStatus"), kind, said),
            when,
            said,
            kind,
            resets_at=resets_at if isinstance(resets_at, int | float) else None,
            refused=kind == REFUSED,
        )

    def _user(self, line: Document, when: float) -> None:
        content = line["message"]["content"]
        said = texts(content, "text")
        blocks = content if isinstance(content, list) else []
        if line.get("isCompactSummary"):
            return
        if line.get("isMeta"):
            if any(text.startswith(GOES_ON) for text in said):
                self._work(when, "a hook sent it on")
        elif any(text.startswith(INTERRUPTED) for text in said):
            self._end_turn(when, "it was interrupted", "interrupted")
        elif results := [block for block in blocks if block.get("type") == "tool_result"]:
            self._results(results, when)
        elif any(text.startswith(NOTIFIED) for text in said):
            self._background = max(0, self._background - 1)
            self._work(when, "a task in the background is done", "prompt")
        elif prompts := [text for text in said if not text.startswith(NOT_PROMPTS)]:
            self._pending.clear()
            self._work(when, f"took a prompt: {prompts[0]}", "prompt")
        elif any(block.get("type") in ("image", "document") for block in blocks):
            self._work(when, "took a prompt", "prompt")

    def _results(self, results: list[Document], when: float) -> None:
        for block in results:
            self._pending.pop(str(block.get("tool_use_id")), None)
        said = [" ".join(texts(block.get("content"), "text")) for block in results]
        self._background += sum(text.startswith(LAUNCHED) for text in said)
        if any(text.startswith(REJECTED) and STOPS in text for text in said):
            self._end_turn(when, "a tool was refused", "rejected")
        else:
            self._work(when, "a tool's result went to the model", "tool-result")

    def _assistant(self, message: Document, when: float) -> None:
        content = message["content"]
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        calls = [block for block in blocks if block.get("type") == "tool_use"]
        for block in calls:
            asks = block["name"] in ASKS
            told = _question(block) if asks else call(block["name"], block.get("input"))
            self._pending[str(block.get("id"))] = told, asks
        if calls:
            self._work(when, "called a tool")
        elif any(block.get("type") == "text" for block in blocks):
            self._take_words("\n".join(texts(content, "text")))
            self._text(message.get("stop_reason"), when)
        else:
            self._work(when, "the model thinks", "answer")

    def _text(self, reason: Any, when: float) -> None:
        if reason in ENDS:
            self._finish(when, "its answer is complete")
        elif reason is None:  # written by versions that don't wait for the end of the answer
            self._say(Activity.WORKING, when, "the model answers", "answer", weak=True)
        else:
            self._work(when, "the model answers", "answer")

    def _finish(self, when: float, why: str) -> None:
        if self._background:  # they work or ask a person: the agent's own transcript does not show it
            self._pending.clear()
            self._say(Activity.WORKING, when, f"{why}; subagents at work: {self._background}", "subagents", weak=True)
        else:
            self._end_turn(when, why)

    def _system(self, line: Document, when: float) -> None:
        match line.get("subtype"):
            case "turn_duration" if not self._has_failed():
                count = line.get("pendingBackgroundAgentCount")
                self._background = count if isinstance(count, int) else 0
                self._finish(when, "its turn is over")
            case "api_error":
                attempt = f"attempt {line.get('retryAttempt')} of {line.get('maxRetries')}"
                self._say(Activity.WORKING, when, f"the model did not answer, and it tries again: {attempt}", "retry")
            case "informational" if CONTINUES.search(line["content"]):
                self._continues(line["content"], when)

    def _continues(self, said: str, when: float) -> None:
        """Add what it says about a limit: that it goes on by itself, and when, or no longer."""
        if said.startswith(RESUMED):
            self._work(when, said, "resumed")
        elif self._claim is not None and self._claim.limit is not None:
            limit = replace(self._claim.limit, words=short(f"{self._claim.limit.words} · {said}", LONGEST_LIMIT_WORDS))
            self._claim = replace(self._claim, why=short(f"{self._claim.why} · {said}"), limit=limit)


def outcome(status: Any, kind: Any, said: str) -> Activity:
    """The activity after an error that ended the turn. After an unknown error the next prompt may work."""
    if LIMIT.search(said):
        return Activity.LIMITED
    if NO_LIMIT.search(said):
        return Activity.WAITING
    if kind in NEEDS_PERSON:
        return Activity.FAILED
    return Activity.LIMITED if kind == "rate_limit" else by_status(status) or Activity.WAITING


def _question(block: Document) -> str:
    given = block.get("input")
    questions = given.get("questions") if isinstance(given, dict) else None
    first = questions[0] if isinstance(questions, list) and questions else None
    return str(first.get("question")) if isinstance(first, dict) else str(block["name"])


READING = ClaudeActivity
