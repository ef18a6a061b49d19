"""What the fleet file says of loops: who is meant, what a template may say, and what must not stand in a remote."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from services.handoff.remotes.targets import address_of
from shared.fleet import BadFleetFile, Fleet, load_fleet
from shared.fleet.loops import subject_of

AGENTS = {"builder": {"kind": "loop"}, "reviewer": {"kind": "loop"}, "lead": {}}
LOOP: dict[str, Any] = {"remote": "x.git", "roles": {"build": "builder", "review": "reviewer", "lead": "lead"}}


def load(directory: Path, loops: dict[str, Any] | None = None, **loop: Any) -> Fleet:
    path = directory / "fleet.yaml"
    path.write_text(json.dumps({"agents": AGENTS, "loops": loops or {"main": {**LOOP, **loop}}}))
    return load_fleet(path)


def fault(directory: Path, loops: dict[str, Any] | None = None, **loop: Any) -> str:
    with pytest.raises(BadFleetFile) as bad:
        load(directory, loops, **loop)
    return str(bad.value).partition(": loops.")[2]


def test_targets_are_roles_or_agents_one_or_several(tmp_path: Path) -> None:
    patterns = {"claim": {"to": "review"}, "stuck": {"to": ["build", "lead", "reviewer"]}}
    inbox = {"a.md": "build", "b.md": ["build", "review"], "c.md": {"to": "lead", "text": "{path}"}}
    loop = load(tmp_path, patterns=patterns, inbox=inbox).declared.loops["main"]
    assert [pattern.to for pattern in loop.patterns.values()] == [["review"], ["build", "lead", "reviewer"]]
    assert [each.to for each in loop.inbox.values()] == [["build"], ["build", "review"], ["lead"]]
    said = fault(tmp_path, patterns={"claim": {"to": ["review", "revewer"]}})
    assert said.startswith("main.patterns.claim.to: no role of this loop and no agent; did you mean 'reviewer'?")


@pytest.mark.parametrize(
    ("subject", "known"),
    [("claim: x", True), ("Claim(api)!: x", True), ("claims: x", False), ("reclaim: x", False), ("claim x", False)],
)
def test_a_pattern_without_a_subject_is_known_by_its_name(tmp_path: Path, subject: str, known: bool) -> None:
    pattern = load(tmp_path, patterns={"claim": {"to": "review"}}).declared.loops["main"].patterns["claim"]
    assert bool(re.search(subject_of("claim", pattern), subject)) is known


@pytest.mark.parametrize(
    ("loop", "said"),
    [
        (
            {"patterns": {"claim": {"to": "lead", "text": "{autor}"}}},
            "main.patterns.claim.text: {autor} is nothing that can",
        ),
        (
            {"inbox": {"a.md": {"to": "lead", "text": "{pattern}"}}},
            "main.inbox.a.md.text: {pattern} is nothing that can",
        ),
        ({"status_file": "{phse}.md"}, "main.status_file: {phse} is nothing that can"),
        ({"done": "^DONE {name}$"}, "main.done: {name} is nothing that can"),
        ({"phases": [{"name": "a"}, {"name": "a"}]}, "main.phases.1.name: another phase above is called so too"),
        ({"phases": [{"name": "a", "models": {"lead": "m"}}]}, "main.phases.0.models.lead: only an agent of kind loop"),
        ({"role_prompts": {"bild": "x.md"}}, "main.role_prompts.bild: no role of this loop; did you mean 'build'?"),
        ({"branch": "a..b"}, "main.branch: no branch can be called so"),
        ({"branch": "-x"}, "main.branch: no branch can be called so"),
        ({"remote": "-x"}, "main.remote: a git remote is expected"),
        ({"remote": "my-helper::x"}, "main.remote: a URL or a path is expected; helpers"),
        ({"remote": "https://ghp_0123@example.com/x"}, "main.remote: a token must not stand in the URL"),
        ({"status_file": "./STATUS.md"}, "main.status_file: a path as git tells it is expected"),
        ({"status_file": "docs//STATUS.md"}, "main.status_file: a path as git tells it is expected"),
        ({"status_file": "../STATUS.md"}, "main.status_file: a path as git tells it is expected"),
        ({"inbox": {"in/": "lead"}}, "main.inbox.in/: not a name that can stand here: a path as git tells it"),
        ({"inbox": {"[ab].md": "lead"}}, "main.inbox.[ab].md: only `*` (any part of a name)"),
        ({"remote": "ext::sh -c id"}, "main.remote: a URL or a path is expected; helpers"),
    ],
)
def test_mistakes_are_reported(tmp_path: Path, loop: dict[str, Any], said: str) -> None:
    assert fault(tmp_path, **loop).startswith(said)


@pytest.mark.parametrize("remote", ["https://ada:geheim@example.com/x.git", "https://:geheim@example.com/x.git"])
def test_a_password_in_a_remote_is_refused_and_not_repeated(tmp_path: Path, remote: str) -> None:
    said = fault(tmp_path, remote=remote)
    assert "leave it to git's credential helper" in said
    assert "geheim" not in said


def test_quantifiers_in_a_done_line_are_no_templates(tmp_path: Path) -> None:
    assert load(tmp_path, done="^DONE [0-9a-f]{7,40} {phase}{1}$").declared.loops["main"].done


def test_an_agent_plays_in_the_phases_of_one_loop(tmp_path: Path) -> None:
    phased = {**LOOP, "phases": [{"name": "a"}]}
    assert load(tmp_path, {"one": phased, "two": LOOP}).phased == {"builder", "reviewer"}
    said = fault(tmp_path, {"one": phased, "two": phased})
    assert said.startswith("two.roles.build: 'builder' plays in the phases of the loop 'one' too")
    assert "lead" not in said, "who is only told may play in many"


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("x.git", "{here}/x.git"),
        ("../x.git", "{above}/x.git"),
        ("/srv/x.git", "/srv/x.git"),
        ("dir/a:b", "{here}/dir/a:b"),
        ("git@example.com:x.git", "git@example.com:x.git"),
        ("https://example.com/x.git", "https://example.com/x.git"),
    ],
)
def test_a_path_is_from_where_the_file_is(tmp_path: Path, remote: str, address: str) -> None:
    fleet = load(tmp_path, remote=remote)
    assert address_of(fleet, fleet.declared.loops["main"]) == address.format(here=tmp_path, above=tmp_path.parent)
