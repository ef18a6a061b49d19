"""The agent programs: which version, how a HOME is prepared for one, and how it is started.

Nothing of the developer's reaches them: each gets an environment made here, a HOME of its own, and a proxy that
leads nowhere for everything but loopback.
"""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

NOWHERE = "http://127.0.0.1:9"
LOOPBACK = "127.0.0.1,localhost"


@dataclass(frozen=True)
class Cli(ABC):
    """One agent program at one version. `ready` is a piece of the screen that is there once its input box is."""

    name: ClassVar[str]
    package: ClassVar[str]
    version: ClassVar[str]
    ready: ClassVar[str]

    @abstractmethod
    def prepare(self, home: Path, work: Path, url: str, *, trusted: bool) -> None:
        """Write the files that spare a person's first run; `trusted` says whether `work` was agreed to."""

    @abstractmethod
    def environment(self, url: str) -> Mapping[str, str]:
        """What this program needs to be told besides what all get."""

    def arguments(self) -> tuple[str, ...]:
        """What follows the program's name, to choose the model."""
        return ()

    def whole_environment(self, home: Path, url: str) -> dict[str, str]:
        return {
            "HOME": str(home),
            "PATH": os.defpath + ":/usr/local/bin",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "SHELL": "/bin/sh",
            "HTTP_PROXY": NOWHERE,
            "HTTPS_PROXY": NOWHERE,
            "http_proxy": NOWHERE,
            "https_proxy": NOWHERE,
            "NO_PROXY": LOOPBACK,
            "no_proxy": LOOPBACK,
            "DO_NOT_TRACK": "1",
            **self.environment(url),
        }


@dataclass(frozen=True)
class Claude(Cli):
    name = "claude"
    package = "@anthropic-ai/claude-code"
    version = "2.1.197"
    ready = "? for shortcuts"

    def prepare(self, home: Path, work: Path, url: str, *, trusted: bool) -> None:
        settings = {
            "hasCompletedOnboarding": True,
            "lastOnboardingVersion": self.version,
            "theme": "dark",
            "projects": {str(work): {"hasTrustDialogAccepted": trusted}},
        }
        _write(home / ".claude.json", settings)

    def environment(self, url: str) -> Mapping[str, str]:
        return {
            "ANTHROPIC_BASE_URL": url,
            "CLAUDE_CODE_OAUTH_TOKEN": "scripted",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "IS_SANDBOX": "1",
        }


@dataclass(frozen=True)
class Codex(Cli):
    name = "codex"
    package = "@openai/codex"
    version = "0.166.0"
    ready = "›"

    def prepare(self, home: Path, work: Path, url: str, *, trusted: bool) -> None:
        lines = [
            'model = "gpt-5.1-codex"',
            'model_provider = "scripted"',
            'approval_policy = "on-request"',
            "check_for_update_on_startup = false",
            "[analytics]",
            "enabled = false",
            "[feedback]",
            "enabled = false",
            "[model_providers.scripted]",
            'name = "scripted"',
            f'base_url = "{url}/v1"',
            'wire_api = "responses"',
            'env_key = "SCRIPTED_KEY"',
        ]
        if trusted:
            lines += [f'[projects."{work}"]', 'trust_level = "trusted"']
        _write(home / ".codex" / "config.toml", "\n".join([*lines, ""]))

    def environment(self, url: str) -> Mapping[str, str]:
        return {"SCRIPTED_KEY": "scripted"}


@dataclass(frozen=True)
class Opencode(Cli):
    name = "opencode"
    package = "opencode-ai"
    version = "1.18.33"
    ready = "Ask anything"

    def prepare(self, home: Path, work: Path, url: str, *, trusted: bool) -> None:
        settings = {
            "autoupdate": False,
            "share": "disabled",
            "model": "anthropic/claude-sonnet-4-5",
            "small_model": "anthropic/claude-sonnet-4-5",
            "permission": {"bash": "ask", "edit": "ask"},
            "provider": {"anthropic": {"options": {"baseURL": f"{url}/v1", "apiKey": "scripted"}}},
        }
        _write(home / ".config" / "opencode" / "opencode.json", settings)

    def environment(self, url: str) -> Mapping[str, str]:
        return {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        }


@dataclass(frozen=True)
class Gemini(Cli):
    name = "gemini"
    package = "@google/gemini-cli"
    version = "0.61.0"
    ready = "Type your message"

    def prepare(self, home: Path, work: Path, url: str, *, trusted: bool) -> None:
        settings: dict[str, Any] = {
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": not trusted}},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False, "disableAutoUpdate": True},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
        }
        _write(home / ".gemini" / "settings.json", settings)

    def environment(self, url: str) -> Mapping[str, str]:
        return {"GEMINI_API_KEY": "scripted", "GOOGLE_GEMINI_BASE_URL": url}


CLIS: tuple[Cli, ...] = (Claude(), Codex(), Opencode(), Gemini())


def _write(file: Path, content: str | dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))
