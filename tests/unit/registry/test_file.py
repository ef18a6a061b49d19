"""`registry.yaml`: never half a file, never a lost comment, and a broken edit is a sentence with its line."""

import os
import re
import stat
import textwrap
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry import AgentRecord, BadRegistry, RegistryFile
from shared.ids import ID_PATTERN
from shared.states import Desired, Status

NOW = datetime(2030, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)


def record(**changes: Any) -> AgentRecord:
    given_: dict[str, Any] = {
        "status": Status.RUNNING,
        "since": NOW,
        "reason": "spawned",
        "desired": Desired.RUNNING,
        "backend": "demo",
        "workspace": "/work",
        "session": "builder",
        "pane": "%3",
        "pid": 7,
        "spawn": "s1",
    }
    return AgentRecord(**{**given_, **changes})


EDITED = textwrap.dedent("""\
    # mine, at the top
    version: 1
    note: kept   # why
    agents:
      # about the builder
      builder:
        status: running   # for now
        since: '2030-01-01T12:00:00Z'
        reason: spawned
        desired: running
        owner: Ann        # a key of my own
        backend: demo
        workspace: /work
        spawn: s1
    after: [1, 2]
    """)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "registry.yaml"


def broken(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadRegistry) as caught:
        RegistryFile(path).records()
    return str(caught.value)


# --- reading and writing ---


def test_there_may_be_no_file_yet(path: Path) -> None:
    assert RegistryFile(path).records() == {}
    assert not path.exists()


def test_what_was_written_is_read_by_anybody(path: Path) -> None:
    records = {"builder": record(), "tester": record(status=Status.EXITED, pane=None, pid=None, drifts=["pane_dead"])}
    writer = RegistryFile(path)
    writer.write(records)
    assert writer.records() == records
    assert RegistryFile(path).records() == records


def test_a_change_leaves_the_others_as_they_are(path: Path) -> None:
    file = RegistryFile(path)
    file.write({"builder": record(), "tester": record(spawn="s2")})
    file.write({"builder": record(spawn="s3")})
    file.write({"new": record(spawn="s4")})
    assert {agent: each.spawn for agent, each in RegistryFile(path).records().items()} == {
        "builder": "s3",
        "tester": "s2",
        "new": "s4",
    }


def test_what_a_record_no_longer_has_is_taken_out(path: Path) -> None:
    file = RegistryFile(path)
    file.write({"builder": record()})
    file.write({"builder": record(pane=None, pid=None)})
    text = path.read_text()
    assert "pane" not in text
    assert "pid" not in text
    assert RegistryFile(path).records()["builder"].pane is None


def test_only_the_owner_may_read_the_file(path: Path) -> None:
    before = os.umask(0)
    try:
        RegistryFile(path).write({"builder": record()})
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_comments_order_and_keys_of_peoples_own_stay(path: Path) -> None:
    path.write_text(EDITED)
    RegistryFile(path).write({"builder": record(status=Status.STOPPED, since=NOW), "tester": record()})
    text = path.read_text()
    for kept in ("# mine, at the top", "note: kept   # why", "# about the builder", "# for now"):
        assert kept in text
    for kept in ("owner: Ann        # a key of my own", "after: [1, 2]", "version: 1"):
        assert kept in text
    assert text.index("owner") < text.index("backend")
    assert RegistryFile(path).records()["builder"].status is Status.STOPPED
    assert set(RegistryFile(path).records()) == {"builder", "tester"}


def test_an_edit_is_read_at_once(path: Path) -> None:
    file = RegistryFile(path)
    file.write({"builder": record()})
    path.write_text(path.read_text().replace("reason: spawned", "reason: because I say so"))
    assert file.records()["builder"].reason == "because I say so"


def test_an_edit_survives_the_next_write(path: Path) -> None:
    file = RegistryFile(path)
    file.write({"builder": record()})
    path.write_text(path.read_text() + "note: mine\n")
    file.write({"tester": record()})
    assert "note: mine" in path.read_text()


def test_an_edit_that_lands_right_after_a_write_is_not_overlooked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = Path.replace

    def replace_and_edit(fresh: Path, target: Path) -> Path:
        replaced = replace(fresh, target)
        path.write_text(path.read_text().replace("reason: spawned", "reason: because I say so"))
        return replaced

    file = RegistryFile(path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace_and_edit)
        file.write({"builder": record()})
    assert file.records()["builder"].reason == "because I say so"


def test_an_unchanged_file_is_not_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RegistryFile(path)
    file.write({"builder": record()})
    monkeypatch.setattr(file, "_read", lambda: pytest.fail("read again"))
    assert file.records() == {"builder": record()}


# --- never half a file ---


def test_a_reader_never_sees_half_a_file(path: Path) -> None:
    agents = [f"agent{number}" for number in range(30)]
    writer = RegistryFile(path)
    writer.write({agent: record(pid=0) for agent in agents})
    done = threading.Event()
    seen: list[str] = []

    def read() -> None:
        while not done.is_set():
            text = path.read_text()
            if not seen or seen[-1] != text:
                seen.append(text)

    reader = threading.Thread(target=read)
    reader.start()
    for pid in range(1, 15):
        writer.write({agent: record(pid=pid) for agent in agents})
    done.set()
    reader.join()
    assert len(seen) > 1
    for text in seen:
        assert text.startswith("# ")
        assert text.count("    pid: ") == len(agents)
        assert len(set(re.findall(r"^    pid: \d+$", text, re.MULTILINE))) == 1


@pytest.mark.parametrize("fails", [(os, "fsync"), (os, "open"), (Path, "replace")])
def test_a_write_that_fails_leaves_the_old_file_and_can_be_made_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, fails: tuple[Any, str]
) -> None:
    file = RegistryFile(path)
    file.write({"builder": record(spawn="s1")})
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(*fails, full)
        with pytest.raises(OSError, match="No space left"):
            file.write({"builder": record(spawn="s2")})
    assert path.read_bytes() == before
    assert file.records()["builder"].spawn == "s1"
    file.write({"builder": record(spawn="s2")})
    assert RegistryFile(path).records()["builder"].spawn == "s2"


# --- broken edits ---


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("version: 1\nagents: {\n", 3),
        ("version: 1\nagents:\n  a: 'x\n", 4),
        ("agents:\n\ta: b\n", 2),
        ("agents:\n  a: {}\n  a: {}\n", 3),
        (EDITED.replace("status: running", "status: runing"), 7),
        (EDITED.replace("pid: 7", "").replace("desired: running", "desired: maybe"), 10),
        (EDITED.replace("'2030-01-01T12:00:00Z'", "yesterday"), 8),
        (EDITED.replace("    backend: demo\n", ""), 6),
    ],
)
def test_a_broken_edit_is_a_sentence_with_the_line(path: Path, text: str, line: int) -> None:
    assert f"registry.yaml, line {line}: " in broken(path, text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n",
        "hello\n",
        "- a\n",
        "version: 1\n",
        "agents:\n",
        "agents: 7\n",
        "agents: []\n",
        "agents:\n  - builder\n",
        "agents:\n  builder:\n",
        "agents:\n  builder: hello\n",
        "agents:\n  builder: 7\n",
        "agents:\n  builder: [a, b]\n",
        "agents:\n  builder:\n    since: 2030-13-45\n",
        "agents: {}\n\0\0\0\0",
    ],
)
def test_any_other_broken_edit_is_a_sentence_too(path: Path, text: str) -> None:
    assert "registry.yaml" in broken(path, text)


def test_bytes_that_are_no_text_are_a_sentence(path: Path) -> None:
    path.write_bytes(b"agents: {\xff: 1}\n")
    with pytest.raises(BadRegistry, match=r"registry\.yaml can't be read"):
        RegistryFile(path).records()


def test_while_the_file_is_broken_the_last_good_state_goes_on(path: Path) -> None:
    file = RegistryFile(path)
    file.write({"builder": record()})
    good = path.read_text()
    path.write_text("agents: {")
    for _ in range(2):
        with pytest.raises(BadRegistry):
            file.records()
        assert file.last_good() == {"builder": record()}
    path.write_text(good)
    assert file.records() == {"builder": record()}


def test_a_broken_file_is_not_overwritten(path: Path) -> None:
    file = RegistryFile(path)
    file.write({"builder": record()})
    path.write_text("agents: {")
    with pytest.raises(BadRegistry):
        file.write({"builder": record(spawn="s2")})
    assert path.read_text() == "agents: {"


def test_the_last_good_state_of_a_file_that_was_never_good_is_not_empty_but_unknown(path: Path) -> None:
    path.write_text("agents: {")
    with pytest.raises(BadRegistry):
        RegistryFile(path).last_good()


def test_the_last_good_state_is_read_when_nobody_did_before(path: Path) -> None:
    RegistryFile(path).write({"builder": record()})
    assert RegistryFile(path).last_good() == {"builder": record()}


# --- any record ---

# Without U+0085: YAML 1.1 and 1.2 differ on whether it ends a line, and it comes back as a space.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x85"), max_size=120)
names = st.sampled_from(["null", "true", "no", "on", "1", "0x1", "1e3", "2030-01-01", "-", "_", "~"])
ids = st.from_regex(ID_PATTERN.replace("$", r"\Z")) | names.filter(lambda name: name != "~")


@given(st.dictionaries(ids, texts, min_size=1, max_size=3), texts, ids)
@settings(max_examples=40, deadline=None)
def test_any_words_are_read_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, reasons: dict[str, str], path_text: str, spawn: str
) -> None:
    path = tmp_path_factory.mktemp("registry") / "registry.yaml"
    records = {agent: record(reason=reason, workspace=path_text, spawn=spawn) for agent, reason in reasons.items()}
    file = RegistryFile(path)
    file.write(records)
    assert RegistryFile(path).records() == records
    file.write({agent: record(reason="short") for agent in records})
    assert set(RegistryFile(path).records()) == set(records)


@given(st.sampled_from(["agents", "builder", "status", "x"]), st.text(max_size=20), st.integers(0, 14))
@settings(max_examples=40, deadline=None)
@pytest.mark.filterwarnings("ignore::ruamel.yaml.error.ReusedAnchorWarning")
def test_any_edit_is_good_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, key: str, value: str, line: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "edited-registry.yaml"
    lines = EDITED.splitlines()
    lines.insert(line, f"{key}: {value}")
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    said = str(path)
    try:
        RegistryFile(path).records()
    except BadRegistry as fault:
        said = str(fault)
    assert str(path) in said
