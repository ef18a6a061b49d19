"""The readers: each looks at one source, and answers one piece of evidence or none."""

from shared.agents.evidence import Evidence, EvidenceSource, LimitStatement

__all__ = ["Evidence", "EvidenceSource", "LimitStatement"]
