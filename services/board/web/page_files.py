"""The page's own files, read once: only what was there at the start is served, whatever a path says."""

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shared.errors import MusterError

CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
    "": "text/plain; charset=utf-8",
}
"""A file with another ending is not served."""

_INLINE_SCRIPT = re.compile(r"<script\b(?P<tag>[^>]*)>(?P<text>.*?)</script>", re.DOTALL | re.IGNORECASE)
_IMPORT_MAP = re.compile(r"""\btype\s*=\s*["']?importmap\b""", re.IGNORECASE)


@dataclass(frozen=True)
class ServedFile:
    content: bytes
    content_type: str


class PageFiles:
    """The files below a directory by the path of their address: `/` is `index.html`, all are below `/page/`."""

    def __init__(self, directory: Path) -> None:
        found: dict[str, ServedFile] = {}
        for path in sorted(directory.rglob("*")):
            parts = path.relative_to(directory).parts
            hidden = any(part.startswith(".") for part in parts)
            # A link could lead anywhere.
            linked = any((directory / Path(*parts[:count])).is_symlink() for count in range(1, len(parts) + 1))
            if path.is_file() and not hidden and not linked and path.suffix in CONTENT_TYPES:
                found[f"/page/{'/'.join(parts)}"] = ServedFile(path.read_bytes(), CONTENT_TYPES[path.suffix])
        if "/page/index.html" not in found:
            raise MusterError(f"the board's page is not in {directory}: index.html is missing; install Muster again")
        found["/"] = found["/page/index.html"]
        self.files: Mapping[str, ServedFile] = found

    def script_hashes(self) -> list[str]:
        """The import maps inside the page, as its content security policy names them. No other script is inline."""
        page = self.files["/"].content.decode("utf-8", errors="replace")
        maps = [each["text"] for each in _INLINE_SCRIPT.finditer(page) if _IMPORT_MAP.search(each["tag"])]
        return [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in maps]

    def security_headers(self) -> list[tuple[str, str]]:
        """The headers of every answer: the page runs its own files only, and nobody frames, embeds or keeps any."""
        policy = {
            "default-src": "'none'",
            "script-src": " ".join(["'self'", *self.script_hashes()]),
            "style-src": "'self'",
            "img-src": "'self' data:",
            "font-src": "'self'",
            "connect-src": "'self'",
            "base-uri": "'none'",
            "form-action": "'none'",
            "frame-ancestors": "'none'",
            "require-trusted-types-for": "'script'",
            "trusted-types": "'none'",
        }
        return [
            ("server", "muster"),
            ("content-security-policy", "; ".join(f"{name} {value}" for name, value in policy.items())),
            ("x-content-type-options", "nosniff"),
            ("cache-control", "no-store"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("permissions-policy", ", ".join(f"{feature}=()" for feature in NO_FEATURES)),
            ("x-frame-options", "DENY"),
        ]


NO_FEATURES = (
    *("accelerometer", "autoplay", "camera", "display-capture", "encrypted-media", "fullscreen", "geolocation"),
    *("gyroscope", "hid", "identity-credentials-get", "magnetometer", "microphone", "midi", "payment"),
    *("picture-in-picture", "publickey-credentials-get", "screen-wake-lock", "serial", "usb"),
    *("xr-spatial-tracking",),
)
"""What a browser would let a page ask for, and this one never does. (It copies text, which is not among them.)"""
