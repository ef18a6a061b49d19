"""What compose.yaml runs, run without an engine: the same commands with the same environment, in a directory of ours.

Only names differ: `python` and `mosquitto` are this machine's, the broker has another loopback address instead of its
name in the containers' network, and tmux has a socket of its own.
"""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil
import pytest

from shared.contract.events.lifecycle import AgentSpawned
from shared.contract.services import SERVICES
from shared.contract.states import Presence, ServiceState
from shared.contract.topics import AGENT_LIFECYCLE, SERVICE_STATE, Space
from shared.messaging.broker import credentials, endpoint, find_program
from shared.messaging.broker.preparation import PORTS, is_free
from shared.runtime.bootstrap import BROKER_URL
from shared.system.lock import hold
from tests.fixtures.broker import Client, wait_until
from tests.fixtures.compose import ROOT, load

FLEET = """\
host: box
tmux: {{socket: {socket}}}
backends: {{sleeper: {{argv: [sleep, "1000"]}}}}
agents: {{builder: {{backend: sleeper}}}}
"""
SPACE = Space("box")
BROKER = "127.0.0.2"
"""Not where a private broker would be looked for: who comes here was told so."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="compose.yaml is for Linux: containers share its tmux")


class Composed:
    """The services of compose.yaml as plain processes."""

    def __init__(self, directory: Path, port: int, board_port: int) -> None:
        self.directory, self.port, self.board_port = directory, port, board_port
        self.socket = directory / "tmux.sock"
        self.home = directory / ".muster"
        (directory / "fleet.yaml").write_text(FLEET.format(socket=self.socket))
        given = {
            "MUSTER_FLEET_DIR": str(directory),
            "MUSTER_UID": str(os.geteuid()),
            "MUSTER_GID": str(os.getegid()),
            "MUSTER_BROKER_PORT": str(port),
            "MUSTER_BOARD_PORT": str(board_port),
            "HOME": str(directory),
        }
        self.services: dict[str, Any] = load(given)["services"]
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def command(self, words: list[str]) -> list[str]:
        programs = {"python": sys.executable, "mosquitto": find_program({"MUSTER_BROKER": "mosquitto"}).path}
        return [programs.get(words[0], words[0]), *words[1:]]

    def environment(self, name: str) -> dict[str, str]:
        """No more than a container has: what compose gives, what the image sets, and where programs are."""
        given = dict(self.services[name].get("environment", {}))
        if BROKER_URL in given:
            given[BROKER_URL] = given[BROKER_URL].replace("//broker:", f"//{BROKER}:")
        return {**given, "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}

    def run(self, name: str, words: list[str] | None = None) -> subprocess.CompletedProcess[str]:
        command = self.command(words or self.services[name]["command"])
        env = self.environment(name)
        return subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, timeout=60, check=False)

    def start(self, name: str, words: list[str] | None = None) -> None:
        with self.log(name).open("ab") as log:
            self._running[name] = subprocess.Popen(
                self.command(words or self.services[name]["command"]),
                env=self.environment(name),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def pid(self, name: str) -> int:
        return self._running[name].pid

    def log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def stop(self, name: str) -> int:
        """As an engine stops a container."""
        process = self._running.pop(name)
        process.send_signal(signal.SIGTERM)
        return process.wait(20)

    def healthy(self, name: str) -> bool:
        how, *words = self.services[name]["healthcheck"]["test"]
        return self.run(name, ["sh", "-c", *words] if how == "CMD-SHELL" else words).returncode == 0

    def viewer(self) -> Client | None:
        found = endpoint(self.home)
        assert found
        with suppress(OSError, AssertionError):
            client = Client(found, *credentials(self.home, "viewer"))
            if client.connected:
                return client
            client.close()
        return None

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-S", str(self.socket), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=20).stdout

    def end(self) -> None:
        for process in self._running.values():
            process.kill()
            process.wait(20)
        self.tmux("kill-server")


@pytest.fixture
def composed() -> Iterator[Composed]:
    # Not below pytest's own directory: the path of a socket may have no more than about a hundred characters.
    with tempfile.TemporaryDirectory(prefix="muster-compose-", ignore_cleanup_errors=True) as directory:
        free = (port for port in PORTS if port % 61 == os.getpid() % 61 and is_free(port))
        made = Composed(Path(directory).resolve(), next(free), next(free))
        try:
            yield made
        finally:
            made.end()


def test_prepare_writes_the_brokers_files_and_nobody_else_may_read_them(composed: Composed) -> None:
    done = composed.run("prepare")
    assert (done.returncode, done.stderr) == (0, "")
    conf = (composed.home / "broker" / "mosquitto.conf").read_text()
    assert f"listener {composed.port} 0.0.0.0\n" in conf
    assert "websockets" not in conf
    assert "@" not in conf.replace("`@NAME@`", "")
    found = endpoint(composed.home)
    assert found
    assert (found.host, found.port) == ("127.0.0.1", composed.port), "the host's own programs come by loopback"
    assert (composed.home / ".gitignore").read_text() == "*\n"
    for path in (composed.home, *composed.home.rglob("*")):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path


def test_prepare_again_keeps_the_passwords(composed: Composed) -> None:
    composed.run("prepare")
    before = (composed.home / "credentials").read_text()
    assert set(json.loads(before)) >= {*SERVICES, "viewer", "operator"}
    assert composed.run("prepare").returncode == 0
    assert (composed.home / "credentials").read_text() == before


def test_prepare_leaves_a_running_private_broker_alone(composed: Composed) -> None:
    with hold(composed.home / "run" / "broker.lock", "broker"):
        done = composed.run("prepare")
    assert done.returncode == 75
    assert "muster down" in done.stderr
    assert not (composed.home / "broker").exists()


def test_prepare_says_what_is_wrong_with_the_fleet_file(composed: Composed) -> None:
    (composed.directory / "fleet.yaml").write_text("agnets: {}\n")
    done = composed.run("prepare")
    assert done.returncode == 1
    assert "did you mean 'agents'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_broker_listens_for_the_containers_and_asks_for_a_password(composed: Composed) -> None:
    composed.run("prepare")
    assert not composed.healthy("broker")
    composed.start("broker")
    wait_until(lambda: composed.healthy("broker"), f"the broker is healthy; see {composed.log('broker')}")
    process = psutil.Process(composed.pid("broker"))
    listening = [c.laddr for c in process.net_connections() if c.status == psutil.CONN_LISTEN]
    assert [tuple(address) for address in listening] == [("0.0.0.0", composed.port)]  # noqa: S104
    found = endpoint(composed.home)
    assert found
    assert Client(found, None, None).refused
    assert composed.stop("broker") == 0
    assert "rror" not in composed.log("broker").read_text()


def test_everything_comes_up_and_finds_each_other(composed: Composed) -> None:
    assert composed.run("prepare").returncode == 0
    composed.start("broker")
    viewer = wait_until(composed.viewer, f"the broker takes a viewer; see {composed.log('broker')}")
    viewer.subscribe(f"{SPACE.root}/#")
    assert not any(composed.healthy(name) for name in SERVICES)
    for name in SERVICES:
        composed.start(name)
    for name in SERVICES:
        state = SERVICE_STATE.read(bytes(viewer.wait_for(SERVICE_STATE.name(SPACE, service=name)).payload)).data
        assert isinstance(state, ServiceState)
        assert (state.status, state.pid) == (Presence.ONLINE, composed.pid(name))
        assert composed.healthy(name)
        peers = [c.raddr for c in psutil.Process(state.pid).net_connections() if c.raddr]
        assert [peer.ip for peer in peers if peer.port == composed.port] == [BROKER]

    spawned = viewer.wait_for(AGENT_LIFECYCLE.name(SPACE, agent="builder"))
    told = AGENT_LIFECYCLE.read(bytes(spawned.payload)).data
    assert isinstance(told, AgentSpawned)
    assert told.workspace == str(composed.directory)
    assert composed.tmux("list-panes", "-t", "=builder", "-F", "#{pane_pid}").split() == [str(told.pid)]

    viewer.wait_for("muster/box/agent/builder/state")
    viewer.wait_for("muster/box/board/builder/state")
    composed.tmux("kill-session", "-t", "=builder")
    viewer.wait_for("muster/box/agent/builder/drift")

    with urlopen(f"http://127.0.0.1:{composed.board_port}/", timeout=20) as page:  # the host's way to it
        assert b"Muster" in page.read()
    for name in SERVICES:
        assert composed.stop(name) == 0, composed.log(name).read_text()
        assert not composed.healthy(name)
    viewer.close()
    assert composed.stop("broker") == 0


def test_the_services_work_on_without_the_broker(composed: Composed) -> None:
    """So they need not wait until it is healthy."""
    composed.run("prepare")
    composed.start("spawner")
    wait_until(lambda: "builder" in composed.tmux("list-sessions"), f"a session; see {composed.log('spawner')}")
    composed.start("broker")
    viewer = wait_until(composed.viewer, f"the broker takes a viewer; see {composed.log('broker')}")
    viewer.subscribe(f"{SPACE.root}/#")
    viewer.wait_for(SERVICE_STATE.name(SPACE, service="spawner"))
    viewer.close()


# --- the read-only directory of tmux's sockets ---

MOUNT = 'mount --bind "$0" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'

TRY = """\
import sys
from pathlib import Path
from shared.system.tmux import Tmux, TmuxUnavailable
tmux = Tmux(sys.argv[1])
try:
    pane = tmux.start(session="agent", argv=["sleep", "1000"], cwd=Path("/"), env={},
                      agent="agent", spawn="s1", fleet="f")
    print(pane.pid)
except TmuxUnavailable as error:
    print(error)
tmux.close()
"""


def with_sockets_read_only(directory: Path, *command: str) -> str:
    """Run a command that sees `outside` as `inside`, and can't write there."""
    inside, outside = directory / "inside", directory / "outside"
    namespace = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    wrapped = [*namespace, "sh", "-c", MOUNT, str(outside), str(inside), *command]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    return subprocess.run(wrapped, env=env, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.fixture
def sockets() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="muster-sockets-") as name:
        directory = Path(name)
        for inner in ("inside", "outside"):
            (directory / inner).mkdir(mode=0o700)
        if shutil.which("unshare") is None:
            pytest.skip("unshare is not installed, so there is no read-only mount to try it on")
        try:
            with_sockets_read_only(directory, "true")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"this user may not make a mount of its own: {error.stderr}")
        yield directory
        subprocess.run(["tmux", "-S", directory / "outside" / "s", "kill-server"], capture_output=True, check=False)


def test_a_container_reaches_the_hosts_tmux_server_by_a_read_only_mount(sockets: Path) -> None:
    socket = str(sockets / "outside" / "s")
    subprocess.run(["tmux", "-S", socket, "new-session", "-d", "-s", "own"], check=True, timeout=20)
    pid = with_sockets_read_only(sockets, sys.executable, "-c", TRY, str(sockets / "inside" / "s")).strip()
    asked = ["tmux", "-S", socket, "list-panes", "-t", "=agent", "-F", "#{pane_pid}"]
    listed = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=20).stdout
    assert listed.split() == [pid]


def test_a_container_never_starts_a_tmux_server_of_its_own(sockets: Path) -> None:
    said = with_sockets_read_only(sockets, sys.executable, "-c", TRY, str(sockets / "inside" / "s"))
    assert "Read-only file system" in said
    assert not list((sockets / "outside").iterdir())
    inside = str(sockets / "inside" / "s")
    assert not [p for p in psutil.process_iter(["cmdline"]) if inside in (p.info["cmdline"] or [])]
