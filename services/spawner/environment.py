"""What tmux itself would let an agent see. Pure."""

from collections.abc import Iterable, Mapping

from shared.fleet.variables import TMUX_SETS, matches


def to_hide(server: Iterable[str], env: Mapping[str, str]) -> list[str]:
    """What a tmux server would pass on and the agent is not to see."""
    return sorted(name for name in server if name not in env and not matches(name, TMUX_SETS))
