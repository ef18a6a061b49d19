"""Inbox files on a real branch: sent to their readers, and reported when they were read."""

from collections.abc import Callable

from shared.contract.events.loops import InboxChanged
from tests.fixtures.repositories import Clone, git
from tests.integration.handoff.station import PAIR, Station

INBOX = {"inbox/builder.md": "build", "inbox/review/*.md": {"to": ["review"], "text": "read {path} by {author}"}}
Make = Callable[..., Station]


def changes(station: Station) -> list[tuple[str, str, list[str]]]:
    return [(each.path, each.change, each.to) for each in station.of(InboxChanged)]


def test_a_changed_inbox_file_is_sent_to_its_reader_and_a_deleted_one_was_read(station: Make, clone: Clone) -> None:
    world = station(inbox=INBOX)
    world.runs("builder", "reviewer")
    world.settled()
    written = clone.commit("a note", inbox__builder_md="do it\n")
    clone.push()
    world.until(lambda: world.texts("builder"), "the message")
    assert world.texts("builder") == [
        f"inbox/builder.md is for you, by ada ({written[:10]}). Act on it, then delete it, commit and push."
    ]
    clone.commit("read", inbox__builder_md=None)
    clone.push()
    world.until(lambda: len(changes(world)) == 2, "that it was read")
    world.settled()
    assert changes(world) == [
        ("inbox/builder.md", "changed", ["builder"]),
        ("inbox/builder.md", "consumed", ["builder"]),
    ]
    assert len(world.texts("builder")) == 1


def test_files_by_a_pattern_have_a_text_of_their_own(station: Make, clone: Clone) -> None:
    world = station(inbox=INBOX)
    world.runs("builder", "reviewer")
    world.settled()
    clone.commit("two", inbox__review__a_md="a\n", inbox__review__b_md="b\n", inbox__review__deep__c_md="no\n")
    clone.push()
    world.until(lambda: world.texts("reviewer"), "the message")
    assert world.texts("reviewer") == ["read inbox/review/a.md by ada\n\nread inbox/review/b.md by ada"]


def test_an_inbox_file_written_and_deleted_between_two_observations_is_reported_but_not_sent(
    station: Make, clone: Clone
) -> None:
    world = station(inbox=INBOX)
    world.runs("builder", "reviewer")
    world.settled()
    clone.commit("write", inbox__builder_md="x\n")
    clone.commit("read", inbox__builder_md=None)
    clone.push()
    world.until(lambda: changes(world), "what became of it")
    world.settled()
    assert (changes(world), world.texts("builder")) == ([("inbox/builder.md", "consumed", ["builder"])], [])


def test_an_inbox_file_that_is_written_again_is_another_message(station: Make, clone: Clone) -> None:
    clone.commit("write", inbox__builder_md="x\n")
    clone.push()
    world = station(inbox=INBOX)
    world.settled()
    assert changes(world) == [("inbox/builder.md", "changed", ["builder"])]
    clone.commit("read", inbox__builder_md=None)
    clone.commit("again", inbox__builder_md="x\n")
    clone.push()
    world.until(lambda: len(changes(world)) == 2, "the second one")


def test_an_inbox_message_of_before_the_first_phase_is_not_lost(station: Make, clone: Clone) -> None:
    clone.commit("write", inbox__builder_md="x\n")
    clone.push()
    world = station(PAIR, inbox=INBOX, phases=[{"name": "one"}])
    world.until(lambda: world.starts("builder"), "the phase")
    world.answers_all()
    world.runs("builder", spawn="s2")
    world.until(lambda: world.texts("builder"), "the message")
    assert "inbox/builder.md is for you" in world.texts("builder")[0]


def test_a_rewritten_branch_repeats_no_unchanged_inbox_message(station: Make, clone: Clone) -> None:
    world = station(inbox=INBOX)
    world.settled()
    clone.commit("first", other="x\n")
    clone.commit("a note", inbox__builder_md="do it\n")
    clone.push()
    world.until(lambda: changes(world), "the message")
    git(clone.path, "commit", "--quiet", "--amend", "--message", "the same note")
    clone.push("--force")
    world.until(lambda: "rewritten" in world.kinds(), "that it was rewritten")
    world.settled()
    assert len(changes(world)) == 1
