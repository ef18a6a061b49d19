"""A home without anybody's tmux configuration, and a tmux server in it that is ended with the test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.system.tmux import Tmux
from tests.integration.tmux.server import Server


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without anybody's tmux configuration."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("TMUX", "TMUX_PANE", "TMUX_TMPDIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def server(home: Path) -> Iterator[Server]:
    server = Server(home)
    yield server
    server.clean_up()


@pytest.fixture
def asking(server: Server) -> Tmux:
    server.start("one")
    return server.tmux
