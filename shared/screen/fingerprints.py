"""What tells one dialog on a screen from the next."""

import hashlib

from shared.screen.reading import Reading


def fingerprint(reading: Reading) -> str:
    """The same as long as the very same dialog stands there; empty where there is none."""
    if reading.dialog is None:
        return ""
    text = f"{reading.dialog.id}\n{reading.dialog_text}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
