"""The fleet file: every fault is a sentence with file, line, key and what is allowed, and the last good one stays."""

import os
import re
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.fleet import BadFleetFile, Declaration, Fleet, FleetFile, find_fleet_file, load_fleet
from shared.fleet import file as fleet_module


def write(path: Path, text: str) -> Path:
    file = path / "fleet.yaml" if path.is_dir() else path
    file.write_text(textwrap.dedent(text), encoding="utf-8")
    return file


def fault(path: Path, text: str) -> str:
    """What is said about a bad file."""
    with pytest.raises(BadFleetFile) as caught:
        load_fleet(write(path, text))
    return str(caught.value)


# --- good files ---


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "agents: {}\n", "---\n", "{}\n"])
def test_a_fleet_may_be_empty(tmp_path: Path, text: str) -> None:
    assert load_fleet(write(tmp_path, text)).declared == Declaration()


def test_a_bare_agent_has_every_default(tmp_path: Path) -> None:
    fleet = load_fleet(write(tmp_path, "agents:\n  builder:\n  tester: {}\n"))
    assert fleet.declared.agents["builder"] == fleet.declared.agents["tester"]
    assert fleet.declared.agents["builder"].enabled


def test_all_that_can_be_declared_is_read(tmp_path: Path) -> None:
    fleet = load_fleet(
        write(
            tmp_path,
            """\
            host: box
            prefix: team
            tmux: {socket: work}
            broker: {endpoints: ["mqtt://h:1883"], port: 1, websocket_port: 65535}
            polls: {connected_s: 1, alone_s: 0.5}
            backends:
              mine: {argv: [run, "{prompt}"], env: {A: b}}
            agents:
              builder:
                backend: mine
                dir: work
                prompt: hello
                env: {C: d}
                enabled: false
                restart: {first_wait_s: 0, longest_wait_s: 9, burst: 0, burst_s: 1}
            """,
        )
    )
    agent = fleet.declared.agents["builder"]
    assert (agent.backend, str(agent.dir), agent.enabled, agent.restart.burst) == ("mine", "work", False, 0)
    assert (fleet.space.host, fleet.space.prefix) == ("box", "team")
    assert fleet.backend("mine") == fleet.declared.backends["mine"]
    assert fleet.backend("demo") is not None
    assert fleet.backend("nobody") is None


def test_a_declared_backend_goes_before_a_shipped_one(tmp_path: Path) -> None:
    fleet = load_fleet(write(tmp_path, "backends: {demo: {argv: [mine]}}\n"))
    demo = fleet.backend("demo")
    assert demo is not None
    assert demo.argv == ["mine"]


def test_musters_own_files_are_beside_the_fleet_file(tmp_path: Path) -> None:
    fleet = load_fleet(write(tmp_path, ""))
    assert fleet.journal == tmp_path / ".muster" / "journal.db"
    assert fleet.registry == tmp_path / ".muster" / "registry.yaml"


def test_two_fleets_mark_their_sessions_apart(tmp_path: Path) -> None:
    stamps = {Fleet(tmp_path / name / "fleet.yaml", Declaration()).stamp for name in ("a", "b", "b")}
    assert len(stamps) == 2


def test_a_host_without_a_name_of_its_own_is_called_by_its_host_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "Big.Box.example")
    assert load_fleet(write(tmp_path, "")).space.host == "big-box-example"


# --- faults ---


@pytest.mark.parametrize(
    ("text", "line", "key", "says"),
    [
        ("host: box\nagnets: {}\n", 2, "agnets", "unknown key; did you mean 'agents'? allowed are: agents, backends,"),
        (
            "agents:\n  a:\n    bakend: demo\n",
            3,
            "agents.a.bakend",
            "did you mean 'backend'? allowed are: backend, dir,",
        ),
        ("agents:\n  a:\n    zzz: 1\n", 3, "agents.a.zzz", "unknown key; allowed are: backend, dir, enabled, env,"),
        ("agents: {a: {restart: {brust: 1}}}\n", 1, "agents.a.restart.brust", "did you mean 'burst'?"),
        ("\n\nbroker:\n  prot: 1\n", 4, "broker.prot", "allowed are: endpoints, port, websocket_port"),
        ("tmux:\n  sock: x\n", 2, "tmux.sock", "did you mean 'socket'? allowed are: socket"),
        ("polls:\n  alone_s: 0\n", 2, "polls.alone_s", "greater than 0"),
        ("polls:\n  alone_s: soon\n", 2, "polls.alone_s", "valid number"),
        ("broker:\n  port: 70000\n", 2, "broker.port", "less than or equal to 65535"),
        ("broker:\n  endpoints:\n    - a\n    - 7\n", 4, "broker.endpoints.1", "valid string"),
        ("broker:\n  endpoints: mqtt://h\n", 2, "broker.endpoints", "valid list"),
        ("host: My Box\n", 1, "host", "pattern '^[a-z0-9_-]{1,64}$'"),
        ("agents:\n  ok:\n  Not Ok:\n", 3, "agents.Not Ok", "pattern '^[a-z0-9_-]{1,64}$'"),
        ("agents:\n  7:\n", 2, "agents.7", "valid string"),
        ("agents:\n  - builder\n", 1, "agents", "valid dictionary"),
        ("agents:\n  a: builder\n", 2, "agents.a", "valid dictionary"),
        ("agents:\n  a:\n    enabled: maybe\n", 3, "agents.a.enabled", "valid boolean"),
        ("agents:\n  a:\n    restart: never\n", 3, "agents.a.restart", "valid dictionary"),
        ("agents:\n  a:\n    restart:\n      burst: -1\n", 4, "agents.a.restart.burst", "greater than or equal to 0"),
        ("agents:\n  a:\n    env:\n      A: 1\n", 4, "agents.a.env.A", "valid string"),
        ("backends:\n  x:\n    env: {}\n", 2, "backends.x.argv", "required"),
        ("backends:\n  x:\n    argv: []\n", 3, "backends.x.argv", "at least 1 item"),
        (
            "agents:\n  a:\n    backend: dmeo\n",
            3,
            "agents.a.backend",
            "there is no backend 'dmeo'; did you mean 'demo'?",
        ),
        (
            "backends:\n  mine: {argv: [x]}\nagents:\n  a: {}\n  b:\n    backend: zzz\n",
            6,
            "agents.b.backend",
            "allowed are: demo, mine",
        ),
    ],
)
def test_a_fault_names_file_line_key_and_what_is_allowed(
    tmp_path: Path, text: str, line: int, key: str, says: str
) -> None:
    said = fault(tmp_path, text)
    assert said.startswith(f"{tmp_path / 'fleet.yaml'}, line {line}: {key}")
    assert says in said


def test_every_fault_is_told_at_once(tmp_path: Path) -> None:
    said = fault(tmp_path, "hots: box\nagents:\n  a:\n    enabled: maybe\n")
    assert sorted(re.findall(r"^.+, line (\d+): ", said, re.MULTILINE)) == ["1", "4"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("agents:\n  a: [\n", 3),
        ("agents:\n\ta:\n", 2),
        ("host: a\nhost: b\n", 2),
        ("host: 'a\n", 2),
        ("host: @box\n", 1),
        ("a: *nobody\n", 1),
    ],
)
def test_what_is_not_yaml_is_said_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    assert fault(tmp_path, text).startswith(f"{tmp_path / 'fleet.yaml'}, line {line}: not YAML: ")


@pytest.mark.parametrize("text", ["hello\n", "- a\n- b\n", "7\n", "true\n"])
def test_a_file_that_is_no_mapping_is_a_fault(tmp_path: Path, text: str) -> None:
    assert "line 1: the file must be a mapping" in fault(tmp_path, text)


@pytest.mark.parametrize("text", ["host: a\0b\n", "host: \x07\n", "\0\0\0\0"])
def test_control_characters_are_a_fault(tmp_path: Path, text: str) -> None:
    """As a crash of the machine leaves them in a file that was being saved."""
    assert "fleet.yaml" in fault(tmp_path, text)


def test_a_date_that_is_none_is_a_fault(tmp_path: Path) -> None:
    assert "fleet.yaml" in fault(tmp_path, "agents:\n  a:\n    prompt: 2030-13-45\n")


def test_bytes_that_are_no_text_are_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_bytes(b"host: \xff\n")
    with pytest.raises(BadFleetFile, match=r"fleet\.yaml can't be read"):
        load_fleet(path)


@pytest.mark.parametrize("value", ["false", "no", "0", '""', "[]"])
def test_only_an_agent_with_nothing_behind_it_has_defaults(tmp_path: Path, value: str) -> None:
    """`builder: false` reads like an agent that is switched off: it must not be started."""
    assert "agents.builder" in fault(tmp_path, f"agents:\n  builder: {value}\n")


keys = st.sampled_from(
    [
        "host",
        "prefix",
        "tmux",
        "broker",
        "polls",
        "backends",
        "agents",
        "builder",
        "dir",
        "restart",
        "argv",
        "x",
        "1",
        "a b",
    ]
)
scalars = st.sampled_from(
    ["", "~", "7", "-1", ".nan", "true", "demo", "[]", "{}", "'", "2030-01-01", "*a", "&a b", "!x y"]
)
lines = st.tuples(st.integers(0, 3), keys, scalars).map(lambda drawn: f"{'  ' * drawn[0]}{drawn[1]}: {drawn[2]}")


@pytest.mark.filterwarnings("ignore::ruamel.yaml.error.ReusedAnchorWarning")
@given(st.lists(lines, max_size=8).map("\n".join) | st.text(max_size=40))
@settings(max_examples=150, deadline=None)
def test_any_text_is_a_fleet_or_a_fault(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any-fleet.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    said = str(path)
    try:
        load_fleet(path)
    except BadFleetFile as bad:
        said = str(bad)
    assert str(path) in said


# --- finding it ---


def test_a_named_file_goes_before_the_environment_and_that_before_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, named, environment, config = (tmp_path / name for name in ("here", "named", "environment", "config"))
    for directory in (here, named, environment, config / "muster"):
        directory.mkdir(parents=True)
        write(directory, "")
    monkeypatch.chdir(here)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config))
    monkeypatch.setenv("MUSTER_FLEET", str(environment / "fleet.yaml"))
    assert find_fleet_file(str(named / "fleet.yaml")) == named / "fleet.yaml"
    assert find_fleet_file(None) == environment / "fleet.yaml"
    monkeypatch.delenv("MUSTER_FLEET")
    assert find_fleet_file(None) == here / "fleet.yaml"
    (here / "fleet.yaml").unlink()
    assert find_fleet_file(None) == config / "muster" / "fleet.yaml"


def test_a_named_file_that_is_not_there_is_not_looked_for_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadFleetFile, match=r"there is no fleet file nowhere\.yaml; make one with"):
        find_fleet_file("nowhere.yaml")
    with pytest.raises(BadFleetFile, match="there is no fleet file"):
        find_fleet_file(str(tmp_path))


def test_without_any_file_the_places_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("MUSTER_FLEET", raising=False)
    with pytest.raises(BadFleetFile) as caught:
        find_fleet_file(None)
    assert f"{tmp_path / 'fleet.yaml'} or {tmp_path / 'config' / 'muster' / 'fleet.yaml'}" in str(caught.value)


# --- while it is edited ---


def test_an_unchanged_file_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = FleetFile(write(tmp_path, "host: a\n"))
    monkeypatch.setattr(fleet_module, "load_fleet", lambda _: pytest.fail("read again"))
    assert not file.refresh()


def test_an_edit_is_taken_up(tmp_path: Path) -> None:
    path = write(tmp_path, "host: a\n")
    file = FleetFile(path)
    write(path, "host: bb\n")
    assert file.refresh()
    assert (file.fleet.space.host, file.fault) == ("bb", "")
    assert not file.refresh()


def test_an_edit_of_the_same_length_by_renaming_is_taken_up(tmp_path: Path) -> None:
    path = write(tmp_path, "host: a\n")
    file = FleetFile(path)
    before = path.stat()
    fresh = write(tmp_path / "new", "host: b\n")
    os.utime(fresh, ns=(before.st_atime_ns, before.st_mtime_ns))
    fresh.replace(path)
    assert file.refresh()
    assert file.fleet.space.host == "b"


def test_the_last_good_file_stays_in_force(tmp_path: Path) -> None:
    path = write(tmp_path, "host: good\n")
    file = FleetFile(path)
    write(path, "hots: bad\n")
    assert not file.refresh()
    assert file.fleet.space.host == "good"
    assert "line 1: hots" in file.fault
    assert not file.refresh()
    assert file.fault
    write(path, "host: better\n")
    assert file.refresh()
    assert (file.fleet.space.host, file.fault) == ("better", "")


def test_a_removed_file_is_a_fault_and_the_last_good_one_stays(tmp_path: Path) -> None:
    path = write(tmp_path, "host: good\n")
    file = FleetFile(path)
    path.unlink()
    assert not file.refresh()
    assert file.fleet.space.host == "good"
    assert "can't be read" in file.fault


def test_an_edit_while_the_file_is_first_read_is_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "host: before\n")

    def load_and_edit(which: Path) -> Fleet:
        fleet = load_fleet(which)
        write(path, "host: afterwards\n")
        return fleet

    with monkeypatch.context() as patch:
        patch.setattr(fleet_module, "load_fleet", load_and_edit)
        file = FleetFile(path)
    file.refresh()
    assert file.fleet.space.host == "afterwards"
