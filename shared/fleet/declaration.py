"""The fleet file as it is written, before defaults and shipped backends are filled in."""

from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from shared.contract.ids import Id
from shared.fleet.backend import Backend
from shared.fleet.loops import Loop
from shared.fleet.policies import Wake, WatchPolicy
from shared.fleet.section import NO_CONTROL_CHARACTERS, PositiveSeconds, Seconds, Section, VariablePattern, Variables
from shared.messaging.broker import BadEndpoint, Endpoint


class RestartPolicy(Section):
    """How often an agent that dies is started again, and when that is given up."""

    first_wait_s: Seconds = 1.0
    """Doubled with each death of a burst, up to `longest_wait_s`."""
    longest_wait_s: Seconds = 60.0
    """No wait is longer."""
    burst: int = Field(default=5, ge=0)
    """At most this many restarts …"""
    burst_s: PositiveSeconds = 60.0
    """… within this time."""
    sustained: int = Field(default=30, ge=0)
    """And at most this many …"""
    sustained_s: PositiveSeconds = 3600.0
    """… within this longer time."""


class FleetRestarts(Section):
    """The same for all agents together, for what kills them all alike."""

    burst: int = Field(default=20, ge=1)
    """More restarts than this …"""
    burst_s: PositiveSeconds = 10.0
    """… within this time wait for their turn."""
    sustained: int = Field(default=0, ge=0)
    """More than this within `sustained_s`, and who dies next is given up; 0: ten for each agent, at least 100."""
    sustained_s: PositiveSeconds = 3600.0
    """The longer time."""


def _is_address(url: str) -> str:
    try:
        Endpoint.parse(url)
    except BadEndpoint:
        # The original message repeats the address, in which people put passwords.
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

    connected_s: PositiveSeconds = 30.0
    """How often to look while a broker answers; changes are pushed anyway."""
    alone_s: PositiveSeconds = 1.0
    """How often to look while none does."""


class LogSettings(Section):
    """The files in which the agents' output is kept."""

    max_mb: float = Field(default=10.0, gt=0, le=100_000)
    """A log is set aside as `<agent>.log.1` before it is larger than this."""
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
    """Starting many agents is spread out, so that it does not melt the machine.

    An agent whose program soon leaves the processors alone gives its place back at once.
    """

    at_once: int = Field(default=8, ge=1, le=10_000)
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


class AgentKind(StrEnum):
    PERSISTENT = "persistent"  # kept running
    LOOP = "loop"  # kept running, and works through phases in a role
    TASK = "task"  # one shot: not started again when it ends
    SERVICE = "service"  # a side service: any command, kept running; nobody types into it


class Agent(Section):
    """One agent; what it does not say, `defaults` says."""

    kind: AgentKind = AgentKind.PERSISTENT
    """`persistent` is kept running, `loop` too, but is started anew for each phase of its loop, `task` is not started
    again when it ends."""
    backend: Id = "demo"
    """What runs it: one of `backends`, or one that comes with Muster."""
    dir: Path = Path()
    """The workspace; relative to this file."""
    role: str = Field(default="", max_length=200)
    """What it is there for, in a few words for people."""
    prompt: str = ""
    """What it is told when it starts."""
    prompt_file: Path | None = None
    """The prompt, kept in a file of its own; relative to this file."""
    model: str | None = None
    """By the name that the backend's program knows; default: the program's own choice."""
    account: Id | None = None
    """Agents on one account share its usage limits."""
    env: Variables = {}
    """Variables of its own; `env_file` is for secrets."""
    env_from: list[VariablePattern] = []
    """Variables that it may see of Muster's own environment."""
    env_file: Path | None = None
    """NAME=value lines, for secrets that should not be in this file; readable by its owner only."""
    enabled: bool = True
    """Whether it is to run without being asked."""
    resume: bool = True
    """Whether a restart takes up the conversation where it ended, if the backend can."""
    resume_prompt: str = ""
    """What it is told then."""
    restart: RestartPolicy = RestartPolicy()
    watch: WatchPolicy = WatchPolicy()
    wake: Wake | None = None

    @model_validator(mode="after")
    def _one_prompt(self) -> Self:
        if self.prompt and self.prompt_file:
            raise ValueError("it has `prompt` and `prompt_file`; keep one of them")
        return self


class SideService(Section):
    """Any command that is kept running beside the agents, a development server, say."""

    argv: list[str] = Field(min_length=1)
    """The command line; no shell reads it."""
    dir: Path = Path()
    """Where it runs; relative to this file."""
    env: Variables = {}
    """Variables of its own."""
    env_from: list[VariablePattern] = []
    """Variables that it may see of Muster's own environment."""
    env_file: Path | None = None
    """NAME=value lines; readable by its owner only."""
    enabled: bool = True
    """Whether it is to run without being asked."""
    restart: RestartPolicy = RestartPolicy()


class ServiceSwitch(Section):
    """A service of Muster's own that not everybody needs."""

    enabled: bool = True
    """Whether it runs; takes effect after `muster down` and `muster up`."""


def _is_listened_on(listen: str) -> str:
    host, colon, port = listen.rpartition(":")
    try:
        ip_address(host[1:-1] if host.startswith("[") and host.endswith("]") else host)
        fine = bool(colon) and port.isascii() and port.isdecimal() and int(port) <= 65535
        fine = fine and (":" not in host or host.startswith("["))
    except ValueError:
        fine = False
    if not fine:
        raise ValueError(
            "not an IP address and a port; write it like 127.0.0.1:8080 or [::1]:8080, with port 0 for a free one"
        )
    return listen


def _is_typed_by_people(url: str) -> str:
    try:
        parts = urlsplit(url)
        fine = parts.scheme in PORTS_OF_PAGES and bool(parts.hostname) and parts.port != 0 and url.isascii()
        fine = fine and not any(letter <= " " for letter in url)
    except ValueError:
        fine = False
    if not fine or "@" in parts.netloc or parts.path.strip("/") or parts.query or parts.fragment:
        # Without the address itself, in which people put passwords.
        raise ValueError(
            "not the address of a page; write it like https://board.example or http://10.0.0.5:8080,"
            " without a path, a user or a password"
        )
    return url


PORTS_OF_PAGES = {"http": 80, "https": 443}


class BoardSettings(ServiceSwitch):
    """The service that shows the fleet as a page. What is said here takes effect when it starts again."""

    listen: Annotated[str, AfterValidator(_is_listened_on)] = "127.0.0.1:0"
    """IP address and port of the page; port 0: a free one, which it keeps over restarts."""
    public_url: Annotated[str, AfterValidator(_is_typed_by_people)] | None = None
    """The address that people type when the page is behind a proxy or VPN of yours, `https://board.example` say; it
    must be set when `listen` is reached from other machines."""

    @model_validator(mode="after")
    def _others_know_its_address(self) -> Self:
        if self.public_url is None and not ip_address(self.address[0]).is_loopback:
            raise ValueError(
                "other machines reach this `listen`, so the page must know its own address there: set `public_url`,"
                " or listen on 127.0.0.1"
            )
        return self

    @property
    def address(self) -> tuple[str, int]:
        """What `listen` says: an IP address without brackets, and the port, which may be 0."""
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port)

    @property
    def public_host(self) -> str | None:
        """What a browser sends as `Host` for the public address: a usual port is left out."""
        if self.public_url is None:
            return None
        parts = urlsplit(self.public_url)
        host = (parts.hostname or "").lower()
        host = f"[{host}]" if ":" in host else host
        return host if parts.port in (None, PORTS_OF_PAGES[parts.scheme]) else f"{host}:{parts.port}"

    @property
    def public_origin(self) -> str | None:
        """What a browser sends as `Origin` for the public address."""
        return None if self.public_url is None else f"{urlsplit(self.public_url).scheme}://{self.public_host}"


class Declaration(Section):
    """A fleet of agents. Paths are relative to the file."""

    version: Literal[1] = 1
    """Of this file's format."""
    host: Id | None = None
    """This machine's name on the bus; default: its host name."""
    prefix: Id = "muster"
    """The first word of every topic."""
    tmux: TmuxSettings = TmuxSettings()
    broker: BrokerSettings = BrokerSettings()
    polls: PollSettings = PollSettings()
    logs: LogSettings = LogSettings()
    registry: RegistrySettings = RegistrySettings()
    adoption: AdoptionSettings = AdoptionSettings()
    start: StartSettings = StartSettings()
    restarts: FleetRestarts = FleetRestarts()
    environment: EnvironmentSettings = EnvironmentSettings()
    workspaces: list[Path] = [Path()]
    """Agents run in these directories and below, nowhere else; default: the directory of this file."""
    defaults: Agent = Agent()
    """What agents have that do not say otherwise."""
    backends: dict[Id, Backend] = {}
    """More kinds of agents, or changes of those that come with Muster."""
    agents: dict[Id, Agent] = {}
    """The agents, by name."""
    services: dict[Id, SideService] = {}
    """Commands that are kept running beside the agents."""
    loops: dict[Id, Loop] = {}
    """Builder and reviewer loops that git drives, by name."""
    handoff: ServiceSwitch = ServiceSwitch()
    """The service that drives loops."""
    board: BoardSettings = BoardSettings()
    """The service that keeps the cards and serves the page."""

    @field_validator("agents", "backends", mode="before")
    @classmethod
    def _bare_means_defaults(cls, given: Any) -> Any:
        """`builder:` without a value is an agent with all defaults."""
        return (
            {name: {} if each is None else each for name, each in given.items()} if isinstance(given, dict) else given
        )
