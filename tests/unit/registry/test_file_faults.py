"""A broken edit is a sentence with its line and column, and the last good state goes on."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry import BadRegistry, ChangedMeanwhile, RegistryFile
from tests.unit.registry.samples import EDITED, record


def broken(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadRegistry) as caught:
        RegistryFile(path).records()
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("version: 1\nagents: {\n", (3, 1), "expected the node content"),
        ("version: 1\nagents:\n  a: 'x\n", (4, 1), "found unexpected end of stream"),
        ("agents:\n\ta: b\n", (2, 1), "cannot start any token"),
        ("agents:\n  a: {}\n  a: {}\n", (3, 3), "`a` is there twice"),
        ("agents: {}\nagents: {}\n", (2, 1), "`agents` is there twice"),
        ("agents:\n  '1': {}\n  1: {}\n", (3, 3), "`1` is there twice"),
        (
            EDITED.replace("status: running", "status: runing"),
            (7, 5),
            "agents.builder.status: Input should be 'running',",
        ),
        (EDITED.replace("desired: running", "desired: maybe"), (10, 5), "Input should be 'running' or 'stopped'"),
        (
            EDITED.replace("'2030-01-01T12:00:00Z'", "yesterday"),
            (8, 5),
            "agents.builder.since: Input should be a valid",
        ),
        (EDITED.replace("    backend: demo\n", ""), (6, 3), "agents.builder.backend: Field required"),
        (
            EDITED.replace("reason: spawned", "reason: [a, b]"),
            (9, 5),
            "agents.builder.reason: Input should be a valid str",
        ),
        (EDITED.replace("builder:", "Build er:"), (6, 3), "agents.Build er: a name has only"),
        (EDITED.replace("spawned", "!!bool x"), (9, 13), "'x' is no bool"),
        (EDITED.replace("spawned", "!mine x"), (9, 13), "could not determine a constructor for the tag"),
        (EDITED.replace("spawned", "*nobody"), (9, 13), "found undefined alias 'nobody'"),
        (EDITED.replace("spawned", "a: b"), (9, 14), "mapping values are not allowed here"),
        (EDITED.replace("spawned", "2030-13-45"), (9, 13), "'2030-13-45' is no timestamp"),
        (EDITED + "---\nagents: {}\n", (16, 1), "but found another document"),
        ("x: 1\nagents: [a]\n", (2, 9), "`agents` must be a mapping"),
        ("x: 1\nhistory: 7\nagents: {}\n", (2, 10), "`history` must be a mapping"),
        ("agents: {}\nx: \x07\n", (2, 4), "it holds the control character '\\x07'"),
        ("- a\n", (1, 1), "it must be a mapping"),
        ("agents:\n  a: b\n", (2, 3), "agents.a: it must be a mapping"),
    ],
)
def test_a_broken_edit_is_reported_with_line_and_column(
    path: Path, text: str, place: tuple[int, int], said: str
) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadRegistry) as caught:
        RegistryFile(path).records()
    message = str(caught.value)
    assert message.startswith(f"{path}, line {place[0]}, column {place[1]}: ")
    assert said in message
    assert message.endswith("; the last good state goes on")
    assert "\n" not in message
    assert (caught.value.line, caught.value.column) == place


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n",
        "hello\n",
        "- a\n",
        "version: 1\n",
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
def test_any_other_broken_edit_is_reported_with_a_sentence(path: Path, text: str) -> None:
    assert "registry.yaml" in broken(path, text)


def test_a_text_that_is_nested_too_deeply_is_reported(path: Path) -> None:
    assert "line 2, column" in (said := broken(path, "agents: {}\nx: " + "[" * 5000))
    assert "it is nested more than 100 levels deep" in said


def test_bytes_that_are_no_text_are_reported(path: Path) -> None:
    path.write_bytes(b"version: 1\nagents: {\xff: 1}\n")
    with pytest.raises(BadRegistry, match=r"registry\.yaml, line 2, column 10: the byte 0xff is not UTF-8"):
        RegistryFile(path).records()


def test_a_path_that_is_no_file_is_reported(path: Path) -> None:
    path.mkdir()
    with pytest.raises(BadRegistry, match=r"registry\.yaml can't be read: it is a directory; the last good state"):
        RegistryFile(path).records()
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(BadRegistry, match=r"registry\.yaml can't be read: it is not a regular file; the last"):
        RegistryFile(path).records()


def test_a_file_without_read_permission_is_reported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RegistryFile(path)
    file.write({"builder": record()})

    def forbidden(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", forbidden)
        with pytest.raises(BadRegistry, match="can't be read: Permission denied"):
            file.records()
        assert file.last_good() == {"builder": record()}
    assert file.records() == {"builder": record()}


def test_an_empty_agents_key_is_a_registry_without_agents(path: Path) -> None:
    path.write_text("version: 1\nagents:  # none yet\n")
    file = RegistryFile(path)
    assert file.records() == {}
    file.write({"builder": record()})
    assert path.read_text().startswith("version: 1\nagents:  # none yet\n  builder:\n    status: running\n")


def test_while_the_file_is_broken_the_last_good_state_counts(path: Path) -> None:
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
    with pytest.raises(ChangedMeanwhile):
        file.write({"builder": record(spawn="s2")})
    with pytest.raises(BadRegistry):
        file.records()
    with pytest.raises(BadRegistry):
        file.write({"builder": record(spawn="s2")})
    assert path.read_text() == "agents: {"


def test_a_file_that_was_never_good_has_no_last_good_state(path: Path) -> None:
    path.write_text("agents: {")
    with pytest.raises(BadRegistry):
        RegistryFile(path).last_good()


def test_the_last_good_state_is_read_if_nothing_was_read_before(path: Path) -> None:
    RegistryFile(path).write({"builder": record()})
    assert RegistryFile(path).last_good() == {"builder": record()}


@given(st.sampled_from(["agents", "builder", "status", "x"]), st.text(max_size=20), st.integers(0, 14))
@settings(max_examples=40, deadline=None)
@pytest.mark.filterwarnings("ignore::ruamel.yaml.error.ReusedAnchorWarning")
def test_any_edit_is_read_or_reported(
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
