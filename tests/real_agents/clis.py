"""The agent programs: which version, how a HOME is prepared for one, and how it is started.

Nothing of the developer's reaches them: each gets an environment made here, a HOME of its own, and a proxy that leads
nowhere for everything but loopback.
"""

import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

NOWHERE = "http://127.0.0.1:9"
LOOPBACK = "127.0.0.1,localhost"


@dataclass(frozen=True)
class Place:
    """Where one run happens: its HOME, its directory (`trusted` says whether it was agreed to), and its model.

    `allowed` says that commands run there without anybody being asked.
    """

    home: Path
    work: Path
    url: str
    trusted: bool = True
    allowed: bool = False


@dataclass(frozen=True)
class Cli(ABC):
    """One agent program at one version.

    `ready` is what its screen says (an expression) once its input box works; `setup` is the script of its package that
    puts the program for this machine in place.
    """

    name: ClassVar[str]
    package: ClassVar[str]
    version: str
    ready: ClassVar[str]
    setup: ClassVar[str | None] = None

    @abstractmethod
    def prepare(self, place: Place) -> None:
        """Write the files that spare it a person's first run, telemetry and updates."""

    @abstractmethod
    def own_environment(self, place: Place) -> Mapping[str, str]:
        """What this program is told besides what all are."""

    def arguments(self) -> tuple[str, ...]:
        """What follows the program's name in every run."""
        return ()

    def environment(self, place: Place) -> dict[str, str]:
        """All that it sees of the world; tmux adds TERM and its own."""
        return {
            "HOME": str(place.home),
            "PATH": search_path(),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "SHELL": "/bin/sh",
            **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), NOWHERE),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), LOOPBACK),
            "DO_NOT_TRACK": "1",
            **self.own_environment(place),
        }


@dataclass(frozen=True)
class Claude(Cli):
    """With an OAuth token it behaves as a subscription does: its limit banners are those that people see.

    Without `subscribed` it is billed by use, and speaks of money instead.
    """

    name = "claude"
    package = "@anthropic-ai/claude-code"
    version: str = "2.1.197"
    subscribed: bool = True
    ready = r"\? for shortcuts|shift\+tab to cycle"
    setup = "install.cjs"

    def prepare(self, place: Place) -> None:
        settings = {
            "hasCompletedOnboarding": True,
            "lastOnboardingVersion": self.version,
            "theme": "dark",
            "projects": {str(place.work): {"hasTrustDialogAccepted": place.trusted}},
        }
        _write(place.home / ".claude.json", settings)
        if place.allowed:
            _write(place.home / ".claude" / "settings.json", {"permissions": {"allow": ["Bash"]}})

    def own_environment(self, place: Place) -> Mapping[str, str]:
        return {
            "ANTHROPIC_BASE_URL": place.url,
            ("CLAUDE_CODE_OAUTH_TOKEN" if self.subscribed else "ANTHROPIC_AUTH_TOKEN"): "scripted",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "IS_SANDBOX": "1",
        }


@dataclass(frozen=True)
class Codex(Cli):
    """With `daemon` it works as it is shipped: a server process of its own does the work, and outlives the pane."""

    name = "codex"
    package = "@openai/codex"
    version: str = "0.166.0"
    ready = r"gpt-5\.1-codex default · "
    daemon: bool = False

    def prepare(self, place: Place) -> None:
        lines = [
            'model = "gpt-5.1-codex"',
            'model_provider = "scripted"',
            "check_for_update_on_startup = false",
            "[features]",
            f"daemon_auto_start = {str(self.daemon).lower()}",
            "[analytics]",
            "enabled = false",
            "[feedback]",
            "enabled = false",
            "[model_providers.scripted]",
            'name = "scripted"',
            f'base_url = "{place.url}/v1"',
            'wire_api = "responses"',
            'env_key = "SCRIPTED_KEY"',
        ]
        if place.trusted:  # a directory whose rules are settled is one that it does not ask about
            sandbox = "danger-full-access" if place.allowed else "workspace-write"
            lines[:0] = ['approval_policy = "on-request"', f'sandbox_mode = "{sandbox}"']
            lines += [f'[projects."{place.work}"]', 'trust_level = "trusted"']
        _write(place.home / ".codex" / "config.toml", "\n".join([*lines, ""]))

    def own_environment(self, _place: Place) -> Mapping[str, str]:
        return {"SCRIPTED_KEY": "scripted"}


@dataclass(frozen=True)
class Opencode(Cli):
    """It asks nobody whether a directory is to be trusted."""

    name = "opencode"
    package = "opencode-ai"
    version: str = "1.18.33"
    ready = r"Ask anything"
    setup = "postinstall.mjs"

    def prepare(self, place: Place) -> None:
        settings = {
            "autoupdate": False,
            "share": "disabled",
            "model": "anthropic/claude-sonnet-4-5",
            "small_model": "anthropic/claude-sonnet-4-5",
            "permission": dict.fromkeys(("bash", "edit"), "allow" if place.allowed else "ask"),
            "provider": {"anthropic": {"options": {"baseURL": f"{place.url}/v1", "apiKey": "scripted"}}},
        }
        _write(place.home / ".config" / "opencode" / "opencode.json", settings)

    def own_environment(self, _place: Place) -> Mapping[str, str]:
        off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
        return {f"OPENCODE_DISABLE_{what}": "1" for what in off}


@dataclass(frozen=True)
class Gemini(Cli):
    name = "gemini"
    package = "@google/gemini-cli"
    version: str = "0.61.0"
    ready = r"Type your message"

    def prepare(self, place: Place) -> None:
        settings: dict[str, Any] = {
            "security": {
                "auth": {"selectedType": "gemini-api-key"},
                "folderTrust": {"enabled": not place.trusted},
            },
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "tools": {"allowed": ["run_shell_command"] if place.allowed else []},
        }
        _write(place.home / ".gemini" / "settings.json", settings)

    def own_environment(self, place: Place) -> Mapping[str, str]:
        return {"GEMINI_API_KEY": "scripted", "GOOGLE_GEMINI_BASE_URL": place.url}


CLIS: tuple[Cli, ...] = (Claude(), Codex(), Opencode(), Gemini())


def search_path() -> str:
    """Where programs are looked for: the system's places, and where this machine keeps node."""
    node = shutil.which("node")
    return ":".join([*([str(Path(node).parent)] if node else []), "/usr/local/bin", "/usr/bin", "/bin"])


def _write(file: Path, content: str | dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))
