"""The private broker's files: passwords that last, ports that last while they are free, modes, contents."""

import base64
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shared.contract.topics import Space
from shared.errors import MusterError
from shared.messaging.broker import (
    BrokerKind,
    BrokerProgram,
    Endpoint,
    NoCredentials,
    credentials,
    endpoint,
    ensure_credentials,
)
from shared.messaging.broker.mosquitto import hashed
from shared.messaging.broker.preparation import PreparedBroker, prepare

PROGRAMS = {kind: BrokerProgram(kind, f"/nowhere/{kind}") for kind in BrokerKind}
ROOT = Path(__file__).parents[5]


def made(
    home: Path, kind: BrokerKind = BrokerKind.MOSQUITTO, port: int | None = None, websocket_port: int | None = None
) -> PreparedBroker:
    return prepare(home, Space("box"), port=port, websocket_port=websocket_port, program=PROGRAMS[kind])


@pytest.fixture
def stranger() -> Iterator[socket.socket]:
    """Another program that listens on some port."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server


@pytest.mark.parametrize("kind", BrokerKind)
def test_every_file_is_its_owners_alone(tmp_path: Path, kind: BrokerKind) -> None:
    home = tmp_path / "a fleet" / ".muster"
    made(home, kind)
    for path in (home, *home.rglob("*")):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    assert not [path for path in home.rglob(".*") if path != home], "no temporary file stays"


@pytest.mark.parametrize("kind", BrokerKind)
def test_a_loose_home_is_tightened(tmp_path: Path, kind: BrokerKind) -> None:
    (tmp_path / "broker").mkdir(mode=0o755)
    (tmp_path / "credentials").write_text("{}")
    made(tmp_path, kind)
    assert (tmp_path / "broker").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "credentials").stat().st_mode & 0o777 == 0o600


def test_passwords_and_ports_survive_a_second_time(tmp_path: Path) -> None:
    first = made(tmp_path)
    secret = credentials(tmp_path, "spawner")
    assert made(tmp_path) == first
    assert credentials(tmp_path, "spawner") == secret
    assert endpoint(tmp_path) == first.endpoint


def test_a_new_role_keeps_the_old_passwords(tmp_path: Path) -> None:
    old = ensure_credentials(tmp_path, ["spawner"])
    both = ensure_credentials(tmp_path, ["spawner", "board"])
    assert both["spawner"] == old["spawner"] != both["board"]
    assert len(both["board"]) >= 40


def test_two_that_are_first_agree(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: ensure_credentials(tmp_path), range(16)))
    assert all(answer == answers[0] for answer in answers)


def test_missing_passwords_are_explained(tmp_path: Path) -> None:
    with pytest.raises(NoCredentials, match="muster up"):
        credentials(tmp_path, "spawner")
    ensure_credentials(tmp_path, ["viewer"])
    with pytest.raises(NoCredentials, match=r"no password for 'spawner'.*viewer"):
        credentials(tmp_path, "spawner")


@pytest.mark.parametrize("text", ["", "[]", '{"spawner": 1}'])
def test_broken_passwords_are_explained_and_never_overwritten(tmp_path: Path, text: str) -> None:
    (tmp_path / "credentials").write_text(text)
    with pytest.raises(NoCredentials, match="delete it and run `muster up`"):
        credentials(tmp_path, "spawner")
    with pytest.raises(NoCredentials):
        ensure_credentials(tmp_path)
    assert (tmp_path / "credentials").read_text() == text


def test_a_saved_port_that_another_program_took_is_given_up(tmp_path: Path) -> None:
    first = made(tmp_path)
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", first.endpoint.port))
        stranger.listen()
        second = made(tmp_path)
    assert second.endpoint != first.endpoint
    assert second.websocket_port == first.websocket_port
    assert endpoint(tmp_path) == second.endpoint


def test_a_wanted_port_that_is_taken_is_refused(tmp_path: Path, stranger: socket.socket) -> None:
    port = stranger.getsockname()[1]
    with pytest.raises(MusterError, match=f"port {port} .* is taken"):
        made(tmp_path, port=port)
    with pytest.raises(MusterError, match="is taken"):
        made(tmp_path, websocket_port=port)


def test_a_wanted_port_is_used_and_kept(tmp_path: Path, stranger: socket.socket) -> None:
    port = stranger.getsockname()[1]
    stranger.close()
    assert made(tmp_path, port=port).endpoint == Endpoint("127.0.0.1", port)
    assert made(tmp_path).endpoint.port == port


@pytest.mark.parametrize("kind", BrokerKind)
def test_the_websockets_listener_can_be_left_out(tmp_path: Path, kind: BrokerKind) -> None:
    assert made(tmp_path, kind, websocket_port=0).websocket_port == 0
    text = Path(made(tmp_path, kind, websocket_port=0).argv[-1]).read_text()
    assert "protocol websockets" not in text
    assert '"websocket"' not in text
    assert "@" not in text.replace("`@NAME@`", "")


@pytest.mark.parametrize(
    "space", [Space("two words"), Space("box", "a b"), Space("+"), Space("box", "x\nuser y"), Space("")]
)
def test_a_space_that_breaks_files_is_refused(tmp_path: Path, space: Space) -> None:
    with pytest.raises(MusterError, match="can't be the start of a topic"):
        prepare(tmp_path, space, program=PROGRAMS[BrokerKind.MOSQUITTO])


def test_mosquitto_gets_no_password_in_clear(tmp_path: Path) -> None:
    made(tmp_path)
    known = json.loads((tmp_path / "credentials").read_text())
    files = "".join(path.read_text() for path in (tmp_path / "broker").iterdir() if path.is_file())
    assert not [role for role, secret in known.items() if secret in files]


def test_a_password_is_hashed_as_mosquitto_does(tmp_path: Path) -> None:
    tool = shutil.which("mosquitto_passwd")
    if tool is None:
        pytest.skip("mosquitto_passwd is not installed; the integration tests log in with our own hash")
    file = tmp_path / "passwords"
    subprocess.run([tool, "-c", "-b", str(file), "viewer", "a secret"], check=True, capture_output=True)
    theirs = file.read_text().strip().removeprefix("viewer:")
    salt = base64.b64decode(theirs.split("$")[3])
    assert hashed("a secret", salt) == theirs


def test_a_nats_user_who_writes_nothing_is_denied_everything(tmp_path: Path) -> None:
    users = json.loads(Path(made(tmp_path, BrokerKind.NATS).argv[-1]).read_text())["authorization"]["users"]
    (viewer,) = [user for user in users if user["user"] == "viewer"]
    assert viewer["permissions"]["publish"] == {"deny": [">"]}


def test_asking_for_endpoint_and_password_imports_nothing_heavy() -> None:
    code = "import sys, shared.messaging.broker; print({'pydantic', 'paho', 'ruamel'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
