"""What each program's screen says in a situation: the words that tell a recording that it has come there.

Expressions, searched in the plain text of the screen line by line. They only say when to record; what is to be
concluded from a screen is another's business.
"""

from collections.abc import Mapping

Sights = Mapping[str, str]

ANY: Sights = {
    "streaming": r"word3\b",
    "answered": r"All done\.",
    "question": r"Which colour do you want",
    "steps": r"\b5077\b|\$ expr 5000 \+ 77",
    "typed": r"half a thought",
}
CLAUDE: Sights = {
    "busy": r"(?m)^[·✢*✶✻✽] \S+…|esc to interrupt",
    "approval-command": r"Do you want to proceed\?",
    "approval-edit": r"Do you want to create",
    "plan": r"Exit plan mode\?",
    "unchecked": r"Auto mode can't check actions",
    "trust": r"(?i)do you trust|trust this folder",
    "interrupted": r"Interrupted",
    "rejected": r"(?i)Interrupted|rejected",
    "limit": r"hit your [\w -]+ limit|Usage limit reached",
    "limit-api": r"API Error|429",
    "menu": r"What do you want to do\?",
    "near": r"(?i)approaching|used \d+%|\d+% of",
    "retrying": r"(?i)retrying in",
    "auth": r"(?i)401|/login|authenticat",
    "credit": r"(?i)credit balance",
    "subagent": r"(?i)agent.*Does a part|Does a part",
    "quoted-limit": r"Access resets at 3:05 PM",
    "quoted-dialog": r"Esc to cancel",
    "quoted-working": r"esc interrupt",
    "quoted-output": r"hit your session limit",
}
CODEX: Sights = {
    "busy": r"esc to interrupt",
    "approval-command": r"Would you like to run the following command\?",
    "approval-edit": r"Would you like to make the following edits\?",
    "trust": r"(?i)trust",
    "interrupted": r"Conversation interrupted",
    "rejected": r"(?i)canceled|interrupted|did not",
    "limit": r"hit your usage limit",
    "retrying": r"(?i)reconnecting|retry",
    "auth": r"(?i)401|unauthorized",
    "credit": r"(?i)quota",
    "subagent": r"(?i)spawned|agent",
    "quoted-limit": r"Access resets at 3:05 PM",
    "quoted-dialog": r"Esc to cancel",
    "quoted-working": r"esc interrupt",
    "quoted-output": r"hit your session limit",
}
OPENCODE: Sights = {
    "busy": r"esc interrupt",
    "approval-command": r"Permission required",
    "approval-edit": r"Permission required",
    "interrupted": r"interrupted",
    "rejected": r"(?s)\A(?!.*Permission required).*ctrl\+p commands",
    "limit": r"retrying in \d+h",
    "retrying": r"retrying",
    "auth": r"(?i)invalid x-api-key",
    "credit": r"(?i)credit balance",
    "subagent": r"Does a part",
    "quoted-limit": r"Access resets at 3:05 PM",
    "quoted-dialog": r"Esc to cancel",
    "quoted-working": r"Working \(3s",
    "quoted-output": r"hit your session limit",
}
GEMINI: Sights = {
    "busy": r"esc to cancel",
    "approval-command": r"Allow execution of",
    "approval-edit": r"Apply this change",
    "trust": r"(?i)do you trust",
    "interrupted": r"Request cancelled",
    "rejected": r"(?i)cancel",
    "limit": r"(?i)limit reached|quota",
    "retrying": r"esc to cancel, [3-9]s",
    "auth": r"(?i)API key not valid",
    "subagent": r"(?i)generalist",
    "quoted-limit": r"Access resets at 3:05 PM",
    "quoted-dialog": r"Esc to cancel",
    "quoted-working": r"esc interrupt",
    "quoted-output": r"hit your session limit",
}
SIGHTS: Mapping[str, Sights] = {
    "claude": {**ANY, **CLAUDE},
    "codex": {**ANY, **CODEX},
    "opencode": {**ANY, **OPENCODE},
    "gemini": {**ANY, **GEMINI},
}
