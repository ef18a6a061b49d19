"""The readers: each looks at one source, and answers one piece of evidence or none."""

from services.monitor.evidence.evidence import Evidence, LimitSaid, Source

__all__ = ["Evidence", "LimitSaid", "Source"]
