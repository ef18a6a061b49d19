"""The reason in git's messages: the line that says what went wrong, and no secret."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.handoff.remotes.git import REASON_CHARACTERS, reason_in


@pytest.mark.parametrize(
    ("complaints", "reason"),
    [
        ("", "it said nothing"),
        ("\n \n", "it said nothing"),
        ("fatal: repository '/x' does not exist\n", "fatal: repository '/x' does not exist"),
        ("hint: a\nfatal: one\nfatal: two\nPlease make sure\n", "fatal: one"),
        ("error: one\nerror: two\n", "error: two"),
        ("something else\nand more\n", "and more"),
        ("remote: Repository not found.\nfatal: repository 'x' not found\n", "fatal: repository 'x' not found"),
        (
            "ssh: Could not resolve hostname nowhere: Name or service not known\r\n"
            "fatal: Could not read from remote repository.\n\n"
            "Please make sure you have the correct access rights\nand the repository exists.\n",
            "ssh: Could not resolve hostname nowhere: Name or service not known",
        ),
        (
            "git@example.org: Permission denied (publickey).\r\nfatal: Could not read from remote repository.\n",
            "git@example.org: Permission denied (publickey).",
        ),
        (
            "Warning: Permanently added 'example.org' (ED25519) to the list of known hosts.\r\n"
            "git@example.org: Permission denied (publickey).\r\nfatal: Could not read from remote repository.\n",
            "git@example.org: Permission denied (publickey).",
        ),
        ("fatal: Could not read from remote repository.\n", "fatal: Could not read from remote repository."),
    ],
)
def test_the_reason_is_the_line_that_says_what_went_wrong(complaints: str, reason: str) -> None:
    assert reason_in(complaints) == reason


@pytest.mark.parametrize("secret", ["hunter2", "ghp_s3cret", "p:a:s:s", "hunter%402", "pässwörd"])
@pytest.mark.parametrize("who", ["ada:{}@", "{}@", ":{}@", "{}:x-oauth-basic@"])
@pytest.mark.parametrize(
    "said", ["fatal: unable to access '{}': 403", "remote: no {} and {}", "fatal: {}", "error: <{}>"]
)
def test_no_secret_of_an_address_is_shown(secret: str, who: str, said: str) -> None:
    url = f"https://{who.format(secret)}example.org/app.git"
    told = reason_in(said.replace("{}", url))
    assert secret not in told
    assert "https://example.org/app.git" in told


def test_a_secret_with_an_at_sign_in_it_is_not_shown_in_part() -> None:
    assert reason_in("fatal: https://ada:pass@word@example.org/app.git") == "fatal: https://example.org/app.git"


def test_a_secret_is_not_shown_where_a_reason_is_cut() -> None:
    for before in range(REASON_CHARACTERS - 40, REASON_CHARACTERS):
        told = reason_in(f"fatal: {'x' * before} https://ada:hunter2@example.org/app.git")
        assert "hun" not in told
        assert len(told) <= REASON_CHARACTERS


@given(st.text())
def test_a_reason_is_always_one_line(complaints: str) -> None:
    told = reason_in(complaints)
    assert 0 < len(told) <= REASON_CHARACTERS
    assert "\n" not in told
