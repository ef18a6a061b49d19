"""Settings of this machine: how it talks, where it looks, what it lets an agent see."""

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from shared.broker import BadEndpoint, Endpoint
from shared.fleet.section import NO_CONTROL_CHARACTERS, MoreThanNoSeconds, Seconds, Section, VariablePattern


def _is_address(url: str) -> str:
    try:
        Endpoint.parse(url)
    except BadEndpoint:
        # Its words repeat the address, and people put passwords there.
        raise ValueError(
            "not a broker's address; write it like mqtt://127.0.0.1:1883 or mqtts://broker.example,"
            " without a path, a user or a password: that is kept in the credentials file"
        ) from None
    return url


Address = Annotated[str, AfterValidator(_is_address)]


class TmuxSettings(Section):
    """The tmux server in which agents run."""

    socket: str = Field(default="default", pattern=NO_CONTROL_CHARACTERS)
    """A tmux socket name, or a path when it contains a slash."""
    width: int = Field(default=200, ge=40, le=1000)
    """Columns of a new session. Agents draw for this width until somebody attaches."""
    height: int = Field(default=50, ge=10, le=500)
    """Rows of a new session."""


class BrokerSettings(Section):
    """How services and people talk to each other."""

    endpoints: list[Address] = []
    """mqtt://host:port, the first that answers is used; none: a private broker is started."""
    port: int | None = Field(default=None, ge=1, le=65535)
    """The private broker's port; default: a free one."""
    websocket_port: int | None = Field(default=None, ge=0, le=65535)
    """The private broker's port for browsers; 0: none."""


class PollSettings(Section):
    """How often services look for themselves."""

    connected_s: MoreThanNoSeconds = 30.0
    """How often to look while a broker answers; changes are pushed anyway."""
    alone_s: MoreThanNoSeconds = 1.0
    """How often to look while none does."""


class LogSettings(Section):
    """The files in which the agents' output is kept."""

    max_mb: float = Field(default=10.0, gt=0, le=100_000)
    """A log that grew past this is set aside as `<agent>.log.1`."""
    keep: int = Field(default=5, ge=0, le=1000)
    """How many of those are kept."""


class RegistrySettings(Section):
    """The record of what runs and what ran."""

    keep_ended_s: Seconds = 24 * 3600.0
    """How long it tells of sessions that ended, and of agents that ended and are not in this file."""


class AdoptionSettings(Section):
    """Agents that somebody started by hand in the same tmux server."""

    found: bool = True
    """Whether they are adopted when they are found; else they are only told of."""
    ignore: list[Annotated[str, StringConstraints(pattern=NO_CONTROL_CHARACTERS)]] = []
    """Names of tmux sessions that are nobody's business; `*` stands for any part of a name."""


class StartSettings(Section):
    """Starting many agents is spread out, so that it does not melt the machine."""

    at_once: int = Field(default=4, ge=1, le=10_000)
    """So many may start together …"""
    gap_s: Seconds = 0.5
    """… and then one more after every so many seconds."""


class EnvironmentSettings(Section):
    """Agents see of Muster's own environment what is named here, and nothing of tmux's."""

    allow: list[VariablePattern] = [
        *("HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "COLORTERM"),
        *("XDG_*", "SSH_AUTH_SOCK", "GIT_*", "EDITOR", "VISUAL", "PAGER", "NODE_EXTRA_CA_CERTS", "SSL_CERT_*"),
        *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    ]
    """Names of variables; `*` stands for any part of a name. Backends and agents may allow more: `env_from`."""
