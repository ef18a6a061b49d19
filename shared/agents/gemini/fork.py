"""Gemini CLI's fork runs in a HOME of its own, with the user's settings and login: in the agent's it would clean up
conversations, and remove files that the agent has open (0.61.0).
"""

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from shared.agents.fork import (
    CannotAsk,
    Fork,
    ForkAnswer,
    ForkFailed,
    ForkSetup,
    OriginalConversation,
    failed,
    last_line,
    no_turn_yet,
    text_at,
)
from shared.agents.hooks.settings_text import JsonNode, parse
from shared.system import files as private
from shared.system.child_process import ProgramResult

HIDDEN = ("hooks", "mcpServers")
LOGIN = ("oauth_creds.json", "google_accounts.json", "gemini-credentials.json", "trustedFolders.json", ".env")
"""The files of the login, and of the trust in the workspace."""
POLICY = '[[rule]]\ntoolName = "*"\ndecision = "deny"\npriority = 999\n'
WITHOUT = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"
"""The variable that may have given the agent its hooks."""
RETRIES = "failed with status 429"


def prepare(original: OriginalConversation, scratch: Path) -> ForkSetup:
    chat = original.transcript
    if chat is None or not chat.is_file():
        raise CannotAsk(no_turn_yet().reason)
    root = Path(original.env.get("GEMINI_CLI_HOME") or original.env.get("HOME") or "/") / ".gemini"
    home = scratch / ".gemini"
    home.mkdir(mode=0o700)
    private.write(home / "settings.json", json.dumps(_settings(root / "settings.json")))
    private.write(scratch / "deny.toml", POLICY)
    for name in LOGIN:
        with suppress(FileNotFoundError):
            shutil.copyfile(root / name, home / name)
            (home / name).chmod(0o600)
    copy = scratch / chat.name
    # The last line may be half written.
    copy.write_bytes(chat.read_bytes().rpartition(b"\n")[0] + b"\n")
    copy.chmod(0o600)
    return ForkSetup({WITHOUT: None}, copy)


def _settings(file: Path) -> dict[str, Any]:
    """The user's settings, which may have comments, without hooks and MCP servers."""
    try:
        found = _plain(parse(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        found = {}
    except (ValueError, RecursionError) as error:
        raise CannotAsk(f"the settings in {file} can't be read: {error}") from error
    known = found if isinstance(found, dict) else {}
    return {**{key: value for key, value in known.items() if key not in HIDDEN}, "hooksConfig": {"enabled": False}}


def _plain(node: JsonNode) -> Any:
    if node.members is not None:
        return {each.key: _plain(each.node) for each in node.members}
    return [_plain(each) for each in node.items] if node.items is not None else node.value


def read(ended: ProgramResult) -> ForkAnswer | ForkFailed | None:
    found = _last_object(ended.out)
    if (answer := text_at(found, "response")) or (found is not None and "response" in found):
        return ForkAnswer(answer)
    if "Error importing session" in ended.err:
        return no_turn_yet()
    if why := text_at(_last_object(ended.err), "error", "message") or text_at(found, "error", "message"):
        return failed(why)
    if RETRIES in ended.err:
        return ForkFailed("the model refused for want of budget", limited=True)
    said = last_line(ended.err) if ended.status else ""
    return failed(said) if said else None


def _last_object(text: str) -> dict[str, Any] | None:
    """The JSON object at the end of a text; it may have several lines, and warnings before it."""
    begins = len(text)
    while (begins := text.rfind("\n{", 0, begins)) >= 0 or text.startswith("{"):
        with suppress(ValueError, RecursionError):
            found, _ = json.JSONDecoder().raw_decode(text, begins + 1)
            return found if isinstance(found, dict) else None
        if begins < 0:
            break
    return None


def is_hopeless(complaints: str) -> bool:
    """Whether it retries, which would take minutes."""
    return RETRIES in complaints


FORK = Fork(read, prepare, is_hopeless)
