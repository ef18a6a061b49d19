"""Structured log lines: one JSON object each, on stderr, which the supervisor writes to rotated files."""

import json
import sys
import threading
import traceback
from datetime import UTC, datetime
from typing import Any, TextIO


class Log:
    """Writes log lines. `said` is in lower case and past tense; details are fields. Never raises."""

    def __init__(self, service: str, stream: TextIO | None = None) -> None:
        self._service = service
        self._stream = stream or sys.stderr
        self._lock = threading.Lock()

    def info(self, said: str, **fields: Any) -> None:
        self._write("info", said, fields)

    def warning(self, said: str, **fields: Any) -> None:
        self._write("warning", said, fields)

    def error(self, said: str, **fields: Any) -> None:
        self._write("error", said, fields)

    def failure(self, said: str, error: BaseException, **fields: Any) -> None:
        """Log an unexpected error with its trace."""
        trace = "".join(traceback.format_exception(error))
        self._write("error", said, {"error": str(error) or repr(error), "trace": trace, **fields})

    def _write(self, level: str, said: str, fields: dict[str, Any]) -> None:
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps(
            {"time": time, "level": level, "service": self._service, "said": said, **fields},
            default=str,
            ensure_ascii=False,
        )
        with self._lock:
            try:
                self._stream.write(line + "\n")
                self._stream.flush()
            except (OSError, ValueError):
                pass  # a full disk or a closed pipe must not end the work
