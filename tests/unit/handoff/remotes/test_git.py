"""Parsing what git prints, also where names, subjects and times are odd."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.handoff.remotes.git import COMMIT_FORMAT, read_blobs, read_commits, read_file_changes, read_tips
from services.handoff.remotes.observation import HEAD, Commit, FileChange
from tests.unit.handoff.samples import sha

ONE, TWO, LONG = sha(1), sha(2), "c" * 64
NOTHING = "0" * 40


# --- ls-remote ---


def test_branches_are_read_with_their_commits() -> None:
    told = f"{ONE}\trefs/heads/main\n{TWO}\trefs/heads/feature/ünï\n{LONG}\trefs/heads/long\n"
    assert read_tips(told) == {"main": ONE, "feature/ünï": TWO, "long": LONG}


@pytest.mark.parametrize(
    "line",
    [
        "",
        "\n\n",
        f"{ONE}\trefs/remotes/origin/HEAD",
        f"{ONE}\trefs/tags/v1",
        f"{ONE}\trefs/tags/v1^{{}}",
        f"{ONE}\trefs/remotes/origin/refs/heads/main",
        f"{ONE} refs/heads/main",
        "ref: refs/heads/main\tHEAD",
        "warning: redirecting to https://example.org/",
        f"{ONE[:39]}\trefs/heads/main",
        f"{ONE}0\trefs/heads/main",
        f"{ONE.upper()}\trefs/heads/main",
    ],
)
def test_a_line_that_is_no_branch_is_ignored(line: str) -> None:
    assert read_tips(line) == {}


def test_head_is_read_as_if_it_were_a_branch() -> None:
    told = f"{ONE}\tHEAD\n{TWO}\trefs/heads/HEAD\n{ONE}\trefs/heads/main\n"
    assert read_tips(told) == {HEAD: ONE, "HEAD": TWO, "main": ONE}


# --- rev-list ---


def record(*fields: str) -> str:
    return "\0".join(fields)


def test_commits_are_read_in_order_with_and_without_a_line_before_each() -> None:
    lines = [record(ONE, "Ada", "a@b", "5", "6", "claim: x"), record(LONG, "Bø", "", "7", "8", "")]
    expected = (Commit(ONE, "Ada", "a@b", 5, 6, "claim: x"), Commit(LONG, "Bø", "", 7, 8, ""))
    assert read_commits("\n".join(lines) + "\n") == expected
    assert read_commits(f"commit {ONE}\n{lines[0]}\ncommit {LONG}\n{lines[1]}\n") == expected
    assert read_commits("") == ()


@pytest.mark.parametrize("subject", ["a\0b\0", "\0" * 9, "a\rb", "a\x0bb\x85c\u2028d", "{author}", "  ", ONE])
def test_a_subject_may_hold_anything_but_a_line_end(subject: str) -> None:
    (found,) = read_commits(record(ONE, "Ada", "a@b", "5", "6", subject) + "\n")
    assert found.subject == subject


@pytest.mark.parametrize(("said", "meant"), [("", 0), ("0", 0), ("-5", -5), ("99999999999999999999", 10**20 - 1)])
def test_the_time_of_a_commit_may_be_any_number_or_missing(said: str, meant: int) -> None:
    (found,) = read_commits(record(ONE, "Ada", "a@b", said, said, "x"))
    assert (found.authored, found.committed) == (meant, meant)


@pytest.mark.parametrize("when", ["soon", "9" * 5_000])
def test_a_commit_with_an_invalid_time_is_still_read(when: str) -> None:
    (found,) = read_commits(record(ONE, "Ada", "a@b", when, "6", "claim: x"))
    assert found.subject == "claim: x"


def test_an_author_with_our_separator_in_the_name_stops_nothing(tmp_path: Path) -> None:
    """Git takes it: one commit of that kind must not make the whole branch unreadable."""
    who = {
        "GIT_AUTHOR_NAME": "A\x1fda",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "c",
        "GIT_COMMITTER_EMAIL": "c@d",
    }
    env = {**os.environ, **who, "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(tmp_path), *words], env=env, check=True, capture_output=True, text=True
        ).stdout

    git("init", "-q")
    for subject in ("claim: one", "claim: two"):
        git("commit", "-q", "--allow-empty", "-m", subject)
        env["GIT_AUTHOR_NAME"] = "Ada"
    found = read_commits(git("rev-list", "--reverse", f"--format={COMMIT_FORMAT}", "HEAD"))
    assert [commit.sha for commit in found] == git("rev-list", "--reverse", "HEAD").split()
    assert found[-1].subject == "claim: two"


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\n"), max_size=5), min_size=5, max_size=9))
def test_odd_fields_never_raise(fields: list[str]) -> None:
    assert len(read_commits(record(ONE, *fields))) <= 1


# --- diff-tree ---


def change(path: str, before: str, after: str, letter: str = "M") -> str:
    return f":100644 100644 {before} {after} {letter}\0{path}\0"


@pytest.mark.parametrize("path", ["a", "a b", "new\nline", "é/日本", ":100644", ONE, "tab\there", '"quoted"', "a\x1fb"])
def test_a_path_may_be_any(path: str) -> None:
    text = ONE + "\0" + change(path, NOTHING, TWO, "A") + change("other", TWO, NOTHING, "D")
    assert list(read_file_changes(text)) == [FileChange(ONE, path, TWO), FileChange(ONE, "other", None)]


def test_each_file_change_belongs_to_the_commit_before_it() -> None:
    text = f"{ONE}\0{change('a', TWO, ONE)}{change('b', TWO, NOTHING)}{TWO}\0{LONG}\0{change('a', 'a' * 64, 'd' * 64)}"
    assert list(read_file_changes(text)) == [
        FileChange(ONE, "a", ONE),
        FileChange(ONE, "b", None),
        FileChange(LONG, "a", "d" * 64),
    ]


def test_file_changes_are_read_without_commits_too() -> None:
    assert list(read_file_changes(change("a", NOTHING, ONE))) == [FileChange("", "a", ONE)]
    assert list(read_file_changes("")) == []


@given(st.integers(0, 400))
def test_output_that_was_cut_off_is_read_as_far_as_it_goes(characters: int) -> None:
    """Of very much only the beginning is kept."""
    whole = f"{ONE}\0{change('inbox/a.md', NOTHING, ONE)}{change('inbox/b.md', TWO, NOTHING)}"
    assert len(list(read_file_changes(whole[:characters]))) <= 2


def test_only_a_blob_is_a_file() -> None:
    answers = f"{ONE} blob 12\n{TWO} tree 37\n{ONE}:a b missing\n{LONG} blob 0\n{ONE} commit 200\n"
    assert read_blobs(answers) == [ONE, None, None, LONG, None]
    assert read_blobs("") == []
