"""Inbox files: which ones changed, which agents get a message, and that patterns mean what they mean to git."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.handoff.loops.branch_files import REPORTED_SINGLY_AT_MOST, InboxNews, glob_pattern, inbox_news
from services.handoff.loops.commits import OutgoingMessage
from services.handoff.loops.templates import values_of
from services.handoff.remotes.observation import BranchObservation
from shared.contract.events.loops import InboxChanged
from shared.fleet.loops import Loop
from tests.unit.handoff.samples import TIP, commit, file_change, loop, observation, sha, watch

INBOX = loop(inbox={"inbox/builder.md": "builder", "inbox/*.md": ["reviewer"]})
PATH = "inbox/builder.md"
CAME = commit(10, "note: for bob")


def news(seen: BranchObservation, given: Loop = INBOX) -> InboxNews:
    return inbox_news(given, seen, values_of("app", given, 0), "app")


def changes(seen: BranchObservation, given: Loop = INBOX) -> list[tuple[str, str]]:
    return [(event.path, event.change) for event in news(seen, given).events]


# --- what became of a file ---


def test_a_changed_inbox_file_is_sent_to_its_reader() -> None:
    found = news(observation([CAME], file_changes=(file_change(PATH),), files={PATH: "b1"}))
    assert found.events == [
        InboxChanged(loop="app", path=PATH, change="changed", branch="main", commit=CAME.sha, author="Ada", to=["bob"])
    ]
    said = f"{PATH} is for you, by Ada ({sha(10)[:10]}). Act on it, then delete it, commit and push."
    assert found.messages == [OutgoingMessage("bob", said, outlives_phase=True)]


def test_a_deleted_inbox_file_was_read_and_no_message_is_sent() -> None:
    found = news(observation([CAME], file_changes=(file_change(PATH, None),), files={PATH: None}))
    assert ([event.change for event in found.events], found.messages) == (["consumed"], [])
    assert found.events[0].to == ["bob"]


@pytest.mark.parametrize(
    ("blobs", "files", "expected"),
    [
        (["b1"], {PATH: "b1"}, "changed"),
        (["b1", "b2"], {PATH: "b2"}, "changed"),
        ([None], {PATH: None}, "consumed"),
        (["b1", None], {PATH: None}, "consumed"),
        ([None, "b0"], {}, "changed"),
        (["b1", None], {}, "consumed"),
        ([], {PATH: "b1"}, "changed"),
        ([], {PATH: None}, "consumed"),
        ([None], {PATH: "b1"}, "changed"),
    ],
)
def test_the_final_state_of_an_inbox_file_counts(
    blobs: list[str | None], files: dict[str, str | None], expected: str
) -> None:
    file_changes = tuple(file_change(PATH, blob, by=10 + place) for place, blob in enumerate(blobs))
    commits = [commit(10 + place) for place in range(len(blobs))]
    assert changes(observation(commits, file_changes=file_changes, files=files)) == [(PATH, expected)]


def test_the_last_commit_that_changed_an_inbox_file_is_its_author() -> None:
    commits = [commit(10, author="Ada"), commit(11, author="Bo"), commit(12, author="Cy")]
    file_changes = (file_change(PATH, "b1", by=10), file_change(PATH, "b2", by=11))
    (event,) = news(observation(commits, file_changes=file_changes, files={PATH: "b2"})).events
    assert (event.author, event.commit) == ("Bo", sha(11))


def test_an_inbox_file_that_no_new_commit_changed_is_of_its_last_commit_or_the_newest() -> None:
    by_merge = observation([CAME], files={PATH: "b1"})
    assert news(by_merge).events[0].commit == CAME.sha
    known = observation([CAME], files={PATH: "b1"}, last_commits={PATH: commit(3, author="Bo")})
    assert news(known).events[0].author == "Bo"


def test_inbox_files_that_are_there_at_the_first_observation_are_reported() -> None:
    first = observation(watch=watch(is_known=False, tip=None), files={PATH: "b1"}, last_commits={PATH: commit(3)})
    assert [(event.path, event.commit) for event in news(first).events] == [(PATH, sha(3))]
    unknown = observation(watch=watch(is_known=False, tip=None), files={PATH: "b1"})
    (event,) = news(unknown).events
    assert (event.author, event.commit) == ("somebody", TIP)


def test_a_rewritten_branch_brings_only_files_that_differ() -> None:
    file_changes = (file_change(PATH), file_change("inbox/rita.md"))
    seen = observation([CAME], rewritten=True, file_changes=file_changes, files={"inbox/rita.md": "b1"})
    assert changes(seen) == [("inbox/rita.md", "changed")]


def test_a_file_that_no_pattern_matches_is_ignored() -> None:
    paths = ["inbox/sub/x.md", "inbox/x.txt", "x/inbox/x.md", "STATUS.md", "INBOX/x.md"]
    assert changes(observation([CAME], files=dict.fromkeys(paths, "b1"))) == []


# --- who reads it ---


def test_the_first_pattern_that_matches_names_the_reader() -> None:
    found = news(observation([CAME], files={PATH: "b1", "inbox/rita.md": "b2"}))
    assert [(event.path, event.to) for event in found.events] == [(PATH, ["bob"]), ("inbox/rita.md", ["rita"])]


def test_each_of_several_readers_gets_a_text_of_its_own() -> None:
    given = loop(inbox={"all.md": {"to": ["builder", "reviewer", "zoe"], "text": "{role}/{agent}: {path} {subject}"}})
    found = news(observation([commit(subject="note {path}")], files={"all.md": "b1"}), given)
    assert [message.text for message in found.messages] == [
        "builder/bob: all.md note {path}",
        "reviewer/rita: all.md note {path}",
        "/zoe: all.md note {path}",
    ]


@pytest.mark.parametrize(
    ("count", "messages"),
    [(REPORTED_SINGLY_AT_MOST, REPORTED_SINGLY_AT_MOST), (REPORTED_SINGLY_AT_MOST + 1, 1), (500, 1)],
)
def test_many_files_for_one_reader_are_one_message(count: int, messages: int) -> None:
    paths = [f"inbox/{number:03}.md" for number in range(count)]
    found = news(observation([CAME], files={**dict.fromkeys(paths, "b1"), PATH: "b1"}))
    assert len(found.events) == count + 1
    assert len([message for message in found.messages if message.agent == "rita"]) == messages
    assert [message.text.split(" ")[0] for message in found.messages if message.agent == "bob"] == [PATH]
    if messages == 1:
        (text,) = [message.text for message in found.messages if message.agent == "rita"]
        head, *shown = text.split("\n")
        assert head == f"{count} files on main are for you, the first of them:"
        assert shown == [f"- {path}" for path in paths[:REPORTED_SINGLY_AT_MOST]]


# --- patterns ---

PATHS = [
    *("b.md", "a.md", ".md", "inbox/a.md", "inbox/b.txt", "inbox/.a.md", "inbox/deep/a.md", "inbox/deep/er/a.md"),
    *("inboxes/a.md", "x/inbox/a.md", "in*box.md", "in box.md", "inbox/a b.md", "inbox/a+b(c).md", "inbox/[ab].md"),
    *("inbox/é.md", "ab", "a/b", "ax/b", "a/x/b", "ax/y/b"),
]
ODD_PATHS = ["inbox/new\nline.md", "new\nline/a.md"]
PATTERNS = [
    *("a.md", "inbox/a.md", "*", "*.md", "inbox/*", "inbox/*.md", "*/a.md", "*/*", "inbox/a?b.md", "?.md", "?"),
    *("**/a.md", "**/*.md", "**/*", "inbox/**", "inbox/**/a.md", "inbox/**/*.md", "**/deep/**", "**", "**/inbox/**"),
    *("a**b", "inbox/**.md", "**a.md", "in?box.md", "in*box.md", "inbox/a+b(c).md", "**/**/a.md", "a/**/b", "a*/b"),
]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("globs")
    subprocess.run(["git", "init", "-q", str(home)], check=True)
    for path in [*PATHS, *ODD_PATHS]:
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text("")
    subprocess.run(["git", "-C", str(home), "add", "-A"], check=True)
    return home


def listed(repository: Path, pattern: str) -> set[str]:
    asked = ["git", "-C", str(repository), "ls-files", "-z", "--", f":(top,glob){pattern}"]
    return set(subprocess.run(asked, check=True, capture_output=True, text=True).stdout.split("\0"))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_means_what_it_means_to_git(repository: Path, pattern: str) -> None:
    """Git says which files there is news of, and the pattern whose they are: what only git takes would be lost."""
    assert {path for path in PATHS if glob_pattern(pattern).fullmatch(path)} == listed(repository, pattern) & {*PATHS}


@pytest.mark.parametrize("pattern", ["**/a.md", "**/*.md", "inbox/**", "inbox/*"])
def test_a_pattern_means_the_same_as_to_git_for_names_with_a_line_break(repository: Path, pattern: str) -> None:
    taken = {path for path in ODD_PATHS if glob_pattern(pattern).fullmatch(path)}
    assert taken == listed(repository, pattern) & {*ODD_PATHS}


@given(st.text(alphabet="ab*?/.[]()+\\\n^$|{}", min_size=1))
def test_every_pattern_can_be_read_and_only_two_stars_reach_into_a_directory(pattern: str) -> None:
    taken = glob_pattern(pattern).fullmatch("inbox/a.md")
    assert taken is None or "**" in pattern or pattern.count("/") == 1


@given(st.text(alphabet=st.characters(exclude_characters="*?[]\\"), min_size=1))
def test_a_path_without_stars_matches_only_itself(path: str) -> None:
    assert glob_pattern(path).fullmatch(path)
    assert not glob_pattern(path).fullmatch(f"{path}x")
    assert not glob_pattern(path).fullmatch(f"x/{path}")
