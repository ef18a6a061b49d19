"""What an agent sees of the environment: what is allowed by name, over it what it is given, and nothing of tmux's."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.spawner.sessions.launch import to_hide
from shared.fleet.declaration import EnvironmentSettings
from shared.fleet.launch_needs import TMUX_SETS, BadEnvironmentFile, environment, matches, read_variables

names = st.sampled_from(["A", "B", "A_B"]) | st.from_regex(r"[A-Z_][A-Z0-9_]{0,5}", fullmatch=True)
values = st.text(max_size=8)
variables = st.dictionaries(names, values, max_size=8)
patterns = st.lists(names | st.from_regex(r"[A-Z*][A-Z_*]{0,4}", fullmatch=True), max_size=5)


# --- allowed and given ---


@given(patterns, variables, variables, variables)
def test_only_what_is_allowed_is_seen_and_what_is_given_counts_more(
    allowed: list[str], own: dict[str, str], first: dict[str, str], second: dict[str, str]
) -> None:
    env = environment(allowed, own, first, second)
    for name, value in env.items():
        expected = {**own, **first, **second}[name]
        assert value == expected
        assert name in first or name in second or matches(name, tuple(allowed))
    assert env.keys() >= first.keys() | second.keys()
    hidden = {name for name in own if matches(name, TMUX_SETS)}
    assert {name for name in own if matches(name, tuple(allowed))} - hidden <= env.keys()


def test_a_star_stands_for_any_part_of_a_name() -> None:
    own = dict.fromkeys(["LC_ALL", "LC_", "LC", "XLC_A", "lc_all", "A_KEY"], "x")
    assert set(environment(["LC_*"], own)) == {"LC_ALL", "LC_"}
    assert set(environment(["*_KEY"], own)) == {"A_KEY"}
    assert set(environment(["*"], own)) == set(own)


@pytest.mark.parametrize("name", ["TMUX", "TMUX_PANE", "TERM", "TERM_PROGRAM"])
def test_nothing_is_passed_on_of_the_terminal_that_muster_was_started_in(name: str) -> None:
    assert environment(["*"], {name: "other", "PATH": "p"}) == {"PATH": "p"}
    assert environment([], {}, {name: "mine"}) == {name: "mine"}


def test_by_default_no_key_of_an_account_is_seen() -> None:
    own = dict.fromkeys(["PATH", "HOME", "LC_ALL", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN"], "x")
    assert set(environment(EnvironmentSettings().allow, own)) == {"PATH", "HOME", "LC_ALL"}


# --- what tmux would pass on ---


@given(st.sets(names | st.sampled_from(["TMUX", "TMUX_PANE", "TERM", "TERM_PROGRAM"])), variables)
def test_of_tmuxs_own_environment_only_what_it_sets_itself_is_seen(server: set[str], env: dict[str, str]) -> None:
    hidden = to_hide(server, env)
    assert hidden == sorted(set(hidden))
    left = server - set(hidden)
    assert all(name in env or name.startswith(("TMUX", "TERM")) for name in left)
    assert not set(hidden) & env.keys(), "what the agent is given is not taken away"


# --- a file of variables ---


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("A=b", {"A": "b"}),
        ("A=b\r\nC=d\r\n", {"A": "b", "C": "d"}),
        ("\ufeffA=b\n", {"A": "b"}),
        ("# words\n\n  # more\nA=b\n", {"A": "b"}),
        ("export A=b\n  export  C=d\n", {"A": "b", "C": "d"}),
        ("A=", {"A": ""}),
        ("A=b=c==", {"A": "b=c=="}),
        ("A='b c'\nD=\"e f\"\n", {"A": "b c", "D": "e f"}),
        ("A=' b '", {"A": " b "}),
        ('A="it\'s"', {"A": "it's"}),
        ("A=\"b'", {"A": "\"b'"}),
        ('A="', {"A": '"'}),
        ("A=$HOME `x` $(y) \\n", {"A": "$HOME `x` $(y) \\n"}),
        ("A=b # no comment", {"A": "b # no comment"}),
        ("A=1\nA=2", {"A": "2"}),
        ("_a1=x", {"_a1": "x"}),
        ("A=one\u2028B=two", {"A": "one\u2028B=two"}),
        ("A=one\x0cB=two", {"A": "one\x0cB=two"}),
    ],
)
def test_variables_are_read_as_they_are_written(text: str, found: dict[str, str]) -> None:
    assert read_variables(text, "secrets") == found


@pytest.mark.parametrize(
    "line", ["secret", "1A=secret", "A B=secret", "A =secret", "=secret", "ä=secret", "A-B=secret"]
)
def test_a_bad_line_is_reported_by_its_number_alone(line: str) -> None:
    with pytest.raises(BadEnvironmentFile) as caught:
        read_variables(f"GOOD=1\n{line}\n", "secrets")
    assert str(caught.value) == "secrets, line 2: not NAME=value"


def test_a_nul_is_reported_with_the_name_and_without_the_value() -> None:
    with pytest.raises(BadEnvironmentFile, match=r"^secrets, line 1: A holds a NUL character, which no variable can$"):
        read_variables("A=sec\0ret", "secrets")


@given(st.dictionaries(names, st.text(st.characters(exclude_characters="\n\r\0'\"", exclude_categories=["Cs"]))))
def test_what_was_written_with_quotes_is_read_back(written: dict[str, str]) -> None:
    text = "".join(f"{name}='{value}'\n" for name, value in written.items())
    assert read_variables(text, "secrets") == written


some_lines = st.tuples(
    st.sampled_from(["A", "export B", "1", "#"]), st.sampled_from(["=", ""]), st.text("\0'\"a ", max_size=3)
)


@given(st.lists(some_lines.map("".join), max_size=3).map("\n".join) | st.text(max_size=60))
@example("A=\0")
def test_any_text_is_variables_or_a_fault_without_a_value(text: str) -> None:
    try:
        found = read_variables(text, "secrets")
    except BadEnvironmentFile as fault:
        said = str(fault)
    else:
        said = "secrets, line "
        assert all(name.isascii() and "\0" not in value for name, value in found.items())
    assert said.startswith("secrets, line ")
