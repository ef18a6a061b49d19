"""`registry.yaml` read and written: an edit of anybody survives, and nothing is written that need not be."""

import os
import re
import stat
import time
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry import BadRegistry, ChangedMeanwhile, EndedSession, RegistryFile, disk, replaced_files
from registry.disk import exchange as real_exchange
from shared.contract.ids import ID_PATTERN
from shared.contract.states import Status
from tests.unit.registry.samples import EDITED, NOW, record


def test_there_may_be_no_file_yet(path: Path) -> None:
    assert RegistryFile(path).records() == {}
    assert not path.exists()


def test_what_was_written_is_read_back(path: Path) -> None:
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


def test_a_field_that_a_record_lost_is_removed(path: Path) -> None:
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
    file = RegistryFile(path)
    change = {"status": Status.STOPPED, "pane": "%7", "reason": "a: b", "level": 1}
    file.write({"builder": file.records()["builder"].model_copy(update=change), "tester": record()})
    text = path.read_text()
    expected = EDITED.replace("running   # for now", "stopped   # for now")
    expected = expected.replace("reason: spawned", "reason: 'a: b'")
    new = "    pane: '%7'\n    level: 1\n"
    expected = expected.replace("    spawn: s1\n", f"    spawn: s1\n{new}")
    assert text.startswith(expected.partition("after")[0])
    assert text.endswith("after: [1, 2]\n")
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
    with pytest.raises(ChangedMeanwhile, match=r"registry\.yaml was edited since it was last read"):
        file.write({"tester": record()})
    file.records()
    file.write({"tester": record()})
    assert "note: mine" in path.read_text()
    assert set(RegistryFile(path).records()) == {"builder", "tester"}


def test_a_look_at_the_history_does_not_count_as_having_read_the_records(path: Path) -> None:
    file = RegistryFile(path)
    file.write({"builder": record()})
    path.write_text(path.read_text().replace("reason: spawned", "reason: because I say so"))
    file.history()
    with pytest.raises(ChangedMeanwhile):
        file.write({"builder": record(pid=8)})
    assert "because I say so" in path.read_text()


def test_an_edit_right_after_a_write_is_noticed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def exchange_and_edit(fresh: Path, target: Path) -> bool:
        done = real_exchange(fresh, target)
        path.write_text(path.read_text().replace("reason: spawned", "reason: because I say so"))
        return done

    file = RegistryFile(path)
    file.write({"builder": record()})
    with monkeypatch.context() as patch:
        patch.setattr(disk, "exchange", exchange_and_edit)
        file.write({"builder": record(pid=8)})
    assert file.records()["builder"].reason == "because I say so"


def test_an_edit_within_a_tick_of_the_clock_is_noticed(path: Path) -> None:
    """A file system's clock may stand still for milliseconds: the stamp alone does not tell."""
    file = RegistryFile(path)
    file.write({"builder": record()})
    was = path.stat()
    with path.open("r+b") as opened:
        opened.seek(path.read_bytes().index(b"spawned"))
        opened.write(b"stopped")
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert file.records()["builder"].reason == "stopped"


def test_an_unchanged_file_is_not_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RegistryFile(path)
    file.write({"builder": record()})
    long_ago = 10**18
    os.utime(path, ns=(long_ago, long_ago))
    records = file.records()
    monkeypatch.setattr(disk, "read", lambda _: pytest.fail("read again"))
    assert file.records() is records


def test_only_what_changed_is_validated_again(path: Path) -> None:
    file = RegistryFile(path)
    file.write({"builder": record(), "tester": record()})
    before = dict(file.records())
    path.write_text(path.read_text().replace("reason: spawned", "reason: because", 1))
    after = file.records()
    assert after["tester"] is before["tester"]
    assert after["builder"].reason == "because"


def test_what_was_written_is_the_same_record_for_its_writer(path: Path) -> None:
    file = RegistryFile(path)
    first, second = {"builder": record(), "tester": record()}, {"builder": record(spawn="s2")}
    file.write(first)
    file.write(second)
    assert file.records()["builder"] is second["builder"]
    assert file.records()["tester"] is first["tester"]


def test_what_is_the_same_is_not_written(path: Path) -> None:
    file = RegistryFile(path)
    file.write()
    assert not path.exists()
    file.write({"builder": record()})
    was = path.stat()
    file.write({"builder": record()}, gone=["nobody"], pruned=["nothing"])
    file.write()
    assert path.stat() == was


def test_a_value_that_a_person_wrote_in_another_way_stays_as_it_is(path: Path) -> None:
    path.write_text(EDITED.replace("'2030-01-01T12:00:00Z'", "2030-01-01 14:00:00 +02:00").replace("/work", '"/work"'))
    file = RegistryFile(path)
    file.write({"builder": file.records()["builder"].model_copy(update={"pid": 0x10})})
    text = path.read_text()
    assert "since: 2030-01-01 14:00:00 +02:00\n" in text
    assert 'workspace: "/work"\n' in text
    assert "pid: 16\n" in text


def test_a_removed_field_leaves_its_comment(path: Path) -> None:
    path.write_text(EDITED.replace("    spawn: s1\n", "    spawn: s1\n    pane: '%3'  # the left one\n    pid: 7\n"))
    file = RegistryFile(path)
    file.write({"builder": file.records()["builder"].model_copy(update={"pane": None, "pid": None})})
    text = path.read_text()
    assert "    pane: null  # the left one\n" in text
    assert "pid" not in text
    assert RegistryFile(path).records()["builder"].pane is None
    before = path.stat()
    file.write({"builder": file.records()["builder"]})
    assert path.stat() == before


def test_a_required_field_is_written_even_if_it_is_empty(path: Path) -> None:
    RegistryFile(path).write({"builder": record(reason="", role="")})
    text = path.read_text()
    assert "    reason: ''\n" in text
    assert "role" not in text
    assert "    level: 1\n" in text
    assert RegistryFile(path).records() == {"builder": record(reason="", role="")}


def test_history_is_written_and_pruned_in_the_same_file(path: Path) -> None:
    file = RegistryFile(path)
    ending = record(status=Status.EXITED, ended=NOW, exit_status=3).ending("builder")
    assert ending is not None
    file.write({"builder": record()}, ended={"s1": ending, "s0": ending})
    assert RegistryFile(path).history() == {"s1": ending, "s0": ending}
    assert RegistryFile(path).records() == {"builder": record()}
    file.write(gone=["builder"], pruned=["s0"])
    assert RegistryFile(path).history() == file.history() == {"s1": ending}
    assert RegistryFile(path).records() == file.records() == {}
    file.write(pruned=["s1"])
    assert path.read_text().endswith("version: 1\nagents: {}\nhistory: {}\n")


def test_an_invalid_history_entry_is_reported_to_readers_of_the_history(path: Path) -> None:
    path.write_text(EDITED + "history:\n  s0:\n    agent: builder\n    status: ended\n")
    file = RegistryFile(path)
    assert set(file.records()) == {"builder"}
    with pytest.raises(
        BadRegistry, match=r"line 19, column 5: history\.s0\.status: Input should be 'running'"
    ) as caught:
        file.history()
    assert (caught.value.line, caught.value.column) == (19, 5)


LATER = NOW + timedelta(hours=1)
BROKEN_ENDS = [
    "{agent: builder, status: ended}",
    "{agent: builder}",
    "{}",
    "7",
    "[a, b]",
    "text",
    "",
    "{ended: 2001-01-01T00:00:00}",
    "&x {<<: {agent: builder}, status: 7}",
]


@pytest.mark.parametrize("broken", BROKEN_ENDS)
@pytest.mark.parametrize("name", ["s0", "'Not A Name'"])
def test_an_invalid_history_entry_does_not_stop_writing(path: Path, broken: str, name: str) -> None:
    ending = record(status=Status.EXITED, ended=NOW).ending("builder")
    assert ending is not None
    file = RegistryFile(path)
    file.write({"builder": record()}, ended={"old": ending, "new": ending.model_copy(update={"ended": LATER})})
    path.write_text(path.read_text() + f"  {name}: {broken}  # mine\n")
    assert file.records() == {"builder": record()}
    assert set(file.valid_history()) == set(RegistryFile(path).valid_history()) == {"old", "new"}
    file.write({"builder": record(pid=8)}, ended={"newest": ending}, pruned=["old"])
    assert f"  {name}: {broken}  # mine\n" in path.read_text()
    assert RegistryFile(path).records()["builder"].pid == 8
    with pytest.raises(BadRegistry, match=rf"line \d+, column \d+: history\.{name[1:4]}" if "'" in name else r"\.s0"):
        file.history()
    file.write(ended={"s0": ending}, pruned=["Not A Name"])
    assert RegistryFile(path).history()["s0"] == ending


def test_a_look_for_ended_sessions_does_not_count_as_having_read_the_records(path: Path) -> None:
    file = RegistryFile(path)
    file.write({"builder": record()})
    path.write_text(path.read_text().replace("reason: spawned", "reason: because I say so"))
    assert file.valid_history() == {}
    with pytest.raises(ChangedMeanwhile):
        file.write({"builder": record(pid=8)})


def test_is_there_is_about_the_look_that_gave_the_records(path: Path) -> None:
    file = RegistryFile(path)
    assert not file.is_there
    assert file.records() == {}
    assert not file.is_there
    file.write({"builder": record()})
    assert file.is_there
    path.unlink()
    assert file.is_there, "nobody has looked"
    file.history()
    assert file.is_there, "these are other questions"
    assert file.records() == {}
    path.write_text(EDITED)
    assert not file.is_there, "it was not when the records were read"
    file.records()
    assert file.is_there


def test_a_file_is_settled_when_it_was_not_written_for_a_while(path: Path) -> None:
    file = RegistryFile(path)
    assert not file.settled, "nobody has looked"
    file.records()
    assert file.settled, "nobody writes to what is not there"
    path.write_text(EDITED)
    file.records()
    assert not file.settled
    some_time_ago(path, replaced_files.QUIET_S / 2)
    file.records()
    assert not file.settled
    some_time_ago(path, replaced_files.QUIET_S * 1.1)
    assert not file.settled, "what was read may be half of it, though it is old by now"
    file.records()
    assert file.settled
    path.write_text(EDITED)
    assert file.settled, "what was read is whole"
    file.records()
    assert not file.settled, "the same text may be the beginning of another"
    some_time_ago(path, 1)
    file.records()
    file.write({"builder": record(pid=8)})
    assert not file.settled
    file.records()
    assert not file.settled
    some_time_ago(path, 1)
    file.records()
    file.records()
    assert file.settled


def test_a_file_that_is_not_written_to_any_more_settles_by_itself(path: Path) -> None:
    path.write_text(EDITED)
    some_time_ago(path, replaced_files.QUIET_S / 2)
    file = RegistryFile(path)
    file.records()
    assert not file.settled
    deadline = time.monotonic() + 5
    while not file.settled:
        assert time.monotonic() < deadline
        time.sleep(0.01)
        file.records()


def some_time_ago(path: Path, seconds: float) -> None:
    when = time.time_ns() - int(seconds * 1e9)
    os.utime(path, ns=(when, when))


@pytest.mark.parametrize("version", ["2", "0", "two", "true", "'1'", "1.5", ""])
def test_a_file_of_another_version_is_refused_and_left_alone(path: Path, version: str) -> None:
    text = EDITED.replace("version: 1", f"version: {version}")
    path.write_text(text)
    file = RegistryFile(path)
    for refused in (file.records, file.history, file.last_good, file.write):
        with pytest.raises(BadRegistry, match="line 2, column 1: `version` must be 1"):
            refused()
    assert path.read_text() == text


def test_a_file_may_have_no_version(path: Path) -> None:
    path.write_text(EDITED.replace("version: 1\n", ""))
    assert set(RegistryFile(path).records()) == {"builder"}


def test_a_file_that_is_set_aside_makes_room_for_a_new_one(path: Path) -> None:
    path.write_text(EDITED)
    file = RegistryFile(path)
    aside = file.set_aside()
    assert aside is not None
    assert re.fullmatch(r"registry\.yaml\.before-\d{8}T\d{6}Z", aside.name)
    assert aside.read_text() == EDITED
    assert file.records() == {}
    assert file.set_aside() is None
    file.write({"builder": record()})
    assert file.records() == {"builder": record()}


def test_an_entry_that_had_to_be_rewritten_is_named(path: Path) -> None:
    flow = "{status: running, since: 2030-01-01T12:00:00Z, reason: x, desired: running, backend: demo, workspace: /}"
    path.write_text(f"version: 1\nagents:\n  builder: {flow}  # mine\n  # about the tester\n  tester: {flow}\n")
    file = RegistryFile(path)
    builder = file.records()["builder"]
    assert file.write({"builder": builder.model_copy(update={"pid": 8})}) == ("agents.builder",)
    text = path.read_text()
    assert text.startswith("version: 1\nagents:\n  builder:\n    status: running\n")
    assert text.endswith(f"    level: 1\n  # about the tester\n  tester: {flow}\n")
    assert file.write({"builder": builder.model_copy(update={"pid": 9})}) == ()


def test_an_ended_session_is_read_back(path: Path) -> None:
    ending = EndedSession(
        agent="builder", status=Status.GAVE_UP, reason="a: b", backend="demo", workspace="/w", ended=NOW
    )
    RegistryFile(path).write(ended={"01j5k0abc": ending})
    assert RegistryFile(path).history() == {"01j5k0abc": ending}
    assert "  01j5k0abc:\n    agent: builder\n    status: gave_up\n    reason: 'a: b'\n" in path.read_text()


# --- any record ---

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=120)
names = st.sampled_from(["null", "true", "no", "on", "1", "0x1", "1e3", "2030-01-01", "-", "_", "~"])
ids = st.from_regex(ID_PATTERN.replace("$", r"\Z")) | names.filter(lambda name: name != "~")


@given(st.dictionaries(ids, texts, min_size=1, max_size=3), texts, ids)
@settings(max_examples=40, deadline=None)
def test_any_text_in_a_record_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, reasons: dict[str, str], path_text: str, spawn: str
) -> None:
    path = tmp_path_factory.mktemp("registry") / "registry.yaml"
    records = {agent: record(reason=reason, workspace=path_text, spawn=spawn) for agent, reason in reasons.items()}
    file = RegistryFile(path)
    file.write(records)
    assert RegistryFile(path).records() == records
    file.write({agent: record(reason="short") for agent in records})
    assert set(RegistryFile(path).records()) == set(records)
