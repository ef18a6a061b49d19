"""The branch of a workspace, whatever lies there: agents can write those files."""

import os
from pathlib import Path

import pytest

from shared.system.git_branch import LONGEST_NAME, MOST_BYTES, branch_of

COMMIT = "9c1185a5c5e9fc54612808977ee8f548b2258d31"


def head(workspace: Path, content: str | bytes) -> Path:
    git = workspace / ".git"
    git.mkdir(parents=True, exist_ok=True)
    (git / "HEAD").write_bytes(content if isinstance(content, bytes) else content.encode())
    return workspace


@pytest.mark.parametrize(
    ("content", "branch"),
    [
        ("ref: refs/heads/main\n", "main"),
        ("ref: refs/heads/topic/a-b\n", "topic/a-b"),
        ("ref: refs/heads/ünï", "ünï"),
        (f"{COMMIT}\n", COMMIT[:10]),
        ("a" * 64, "a" * 10),
        ("ref: refs/remotes/x\n", None),
        ("ref: refs/heads/\n", None),
        ("", None),
        ("\n", None),
        ("abc", None),
        (f"{COMMIT} and more", None),
        (b"\xff\xfe\x00\x01" * 40, None),
        (b"ref: refs/heads/" + b"x" * 100_000, "x" * LONGEST_NAME),
        (b"\x00" * 100_000, None),
    ],
)
def test_the_branch_that_is_checked_out(tmp_path: Path, content: str | bytes, branch: str | None) -> None:
    assert branch_of(head(tmp_path, content)) == branch


def test_a_linked_work_tree(tmp_path: Path) -> None:
    real = tmp_path / "repo" / ".git" / "worktrees" / "w"
    real.mkdir(parents=True)
    (real / "HEAD").write_text("ref: refs/heads/linked\n")
    for place, written in (("w", str(real)), ("r", "../repo/.git/worktrees/w")):
        tree = tmp_path / place
        tree.mkdir()
        (tree / ".git").write_text(f"gitdir: {written}\n")
        assert branch_of(tree) == "linked"


@pytest.mark.parametrize("content", ["", "something else", "gitdir: /nowhere", "gitdir: \x00", "gitdir: ", "gitdir: ."])
def test_a_link_that_leads_nowhere(tmp_path: Path, content: str) -> None:
    (tmp_path / ".git").write_text(content)
    assert branch_of(tmp_path) is None


def test_no_work_tree(tmp_path: Path) -> None:
    assert branch_of(tmp_path) is None
    assert branch_of(tmp_path / "gone") is None
    assert branch_of(Path("\x00")) is None
    (tmp_path / ".git").mkdir()
    assert branch_of(tmp_path) is None


def test_a_link_is_not_followed_to_another_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("ref: refs/heads/secret")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").symlink_to(secret)
    assert branch_of(tmp_path) is None


def test_a_git_directory_may_be_a_link(tmp_path: Path) -> None:
    head(tmp_path / "real", "ref: refs/heads/main\n")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / ".git").symlink_to(tmp_path / "real" / ".git")
    assert branch_of(tmp_path / "tree") == "main"


def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git" / "HEAD")
    assert branch_of(tmp_path) is None
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "tree").mkdir()
    os.mkfifo(tmp_path / "tree" / ".git")
    assert branch_of(tmp_path / "tree") is None


def test_a_directory_in_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / ".git" / "HEAD").mkdir(parents=True)
    assert branch_of(tmp_path) is None


def test_a_huge_file_is_read_only_at_its_start(tmp_path: Path) -> None:
    workspace = head(tmp_path, b"ref: refs/heads/main\n")
    os.truncate(workspace / ".git" / "HEAD", 1 << 40)
    assert branch_of(workspace) == "main"
    assert MOST_BYTES <= 65_536
