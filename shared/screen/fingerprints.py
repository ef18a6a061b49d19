"""What tells one dialog on a screen from the next."""

import hashlib
import re

from shared.screen.reading import Reading

PAINT = re.compile(r"[\s❯›●○◯>\u2500-\u259f]")
"""What changes where the same dialog is painted anew: the row that is chosen, how lines are wrapped, frames."""


def fingerprint(reading: Reading) -> str:
    """The same as long as the very same dialog stands there; empty where there is none."""
    if reading.dialog is None:
        return ""
    text = f"{reading.dialog.id}\n{PAINT.sub('', reading.dialog_text)}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
