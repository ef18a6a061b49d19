"""All that is remembered of one agent by the policies, as JSON and back."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeVar

from services.monitor.limits.decision import LimitMemory
from services.monitor.limits.hold import LimitHold
from services.monitor.policies.idleness import Silence
from services.monitor.policies.stall import Stall
from services.monitor.policies.trouble import Troubled
from services.monitor.policies.wake import Waking
from shared.contract.states import Trouble

D = TypeVar("D")


@dataclass(frozen=True)
class PolicyMemory:
    limits: LimitMemory = field(default_factory=LimitMemory)
    troubled: Troubled = field(default_factory=Troubled)
    silence: Silence = field(default_factory=Silence)
    stall: Stall = field(default_factory=Stall)
    waking: Waking = field(default_factory=Waking)

    @property
    def pending(self) -> tuple[str, ...]:
        """The commands whose answers are waited for."""
        held = self.limits.held
        asked = (held.asked if held is not None else "", self.waking.asked, self.troubled.asked)
        return tuple(each for each in asked if each)

    def document(self) -> dict[str, Any] | None:
        """None where there is nothing to remember."""
        return asdict(self) if self != NOTHING else None

    @classmethod
    def read(cls, kept: dict[str, Any] | None) -> "PolicyMemory":
        """What a later version may have kept besides is passed over; what can't be read is forgotten."""
        if not kept:
            return NOTHING
        try:
            limits, troubled = kept["limits"], kept["troubled"]
            return cls(
                _read(
                    LimitMemory, {**limits, "held": _read(LimitHold, limits["held"]) if limits.get("held") else None}
                ),
                _read(Troubled, {**troubled, "trouble": Trouble(troubled["trouble"]) if troubled["trouble"] else None}),
                _read(Silence, kept["silence"]),
                _read(Stall, kept["stall"]),
                _read(Waking, kept["waking"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            return NOTHING


def _read(kind: type[D], kept: dict[str, Any]) -> D:
    known = {each.name for each in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in kept.items() if name in known})


NOTHING = PolicyMemory()
