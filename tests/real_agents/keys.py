"""Which keys each program wants for what a person decides."""

import re

KEYS: dict[str, dict[str, tuple[str, ...]]] = {
    "claude": {"approve": ("Enter",), "dismiss": ("Escape",), "interrupt": ("Escape",)},
    "codex": {"approve": ("y",), "dismiss": (), "interrupt": ("Escape",)},
    "opencode": {
        "approve": ("Enter",),
        "no": ("Right", "Right", "Enter", "Enter"),
        "interrupt": ("Escape", "Escape"),  # it asks to have the key pressed again
    },
    "gemini": {"approve": ("Enter",), "dismiss": ("2",), "interrupt": ("Escape",)},
}
NO = re.compile(r"(\d)\. No\b")
"""The row of a dialog that says no, where rows have numbers; a new release may have one more above it."""
LEAVE = {"claude": "/exit", "codex": "/quit", "opencode": "/exit", "gemini": "/quit"}
