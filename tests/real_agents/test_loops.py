"""Claude Code builds and Codex reviews, through git, phase by phase: real programs, driven by nothing but pushes."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import RunningFleet
from tests.fixtures.repositories import Clone, bare, git
from tests.real_agents.clis import Claude, Cli, Codex, Place
from tests.real_agents.installs import installed
from tests.real_agents.manned import end_all_in
from tests.real_agents.model import Model

pytestmark = [pytest.mark.real_agent, pytest.mark.timeout(600)]

WITHIN_S = 240.0
PUSH = "git commit -q --allow-empty -m '{0}: {{phase}}' && git pull -q --rebase && git push -q"
PATTERNS = {
    "claim": {"to": "review", "text": f"{{subject}} is to be reviewed. DO-BASH {PUSH.format('review')}"},
    "review": {
        "to": "build",
        "text": "{subject} was said. DO-BASH git pull -q --rebase && echo STATUS: DONE {phase} > STATUS.md"
        f" && git add . && {PUSH.format('status')}",
    },
}


def declared(cli: Cli, place: Place, room: Path) -> dict[str, Any]:
    return {
        "kind": "loop",
        "backend": cli.name,
        "dir": str(place.work.relative_to(room)),
        "env": cli.environment(place),
    }


def test_two_real_agents_hand_work_to_each_other_through_two_phases(tmp_path: Path) -> None:
    remote = bare(tmp_path / "remote.git")
    first = Clone(remote, tmp_path / "seed")
    first.commit("begin", STATUS_md="STATUS: OPEN\n")
    first.push()
    (tmp_path / "build.md").write_text(f"You are {{agent}}. DO-BASH {PUSH.format('claim')}")
    (tmp_path / "review.md").write_text("You are {agent}. Wait.")
    with Model().serving() as model:
        places = {}
        for name, cli in (("builder", Claude()), ("reviewer", Codex())):
            home, work = tmp_path / name / "home", tmp_path / name / "work"
            home.mkdir(parents=True)
            Clone(remote, work, name)
            git(work, "branch", "--quiet", "--set-upstream-to=origin/main", "main")
            places[name] = Place(home, work, model.url, allowed=True)
            cli.prepare(places[name])
        agents = {
            "builder": declared(Claude(), places["builder"], tmp_path),
            "reviewer": declared(Codex(), places["reviewer"], tmp_path),
        }
        loop = {
            "remote": "remote.git",
            "poll_s": 1,
            "roles": {"build": "builder", "review": "reviewer"},
            "patterns": PATTERNS,
            "status_file": "STATUS.md",
            "done": "^STATUS: DONE {phase}$",
            "role_prompts": {"build": "build.md", "review": "review.md"},
            "phases": [{"name": "one"}, {"name": "two", "models": {"build": "haiku"}}],
        }
        backends = {cli.name: {"binary": str(installed(cli))} for cli in (Claude(), Codex())}
        fleet = RunningFleet(tmp_path, agents, backends=backends, loops={"main": loop})
        try:
            fleet.up()
            wait_until(lambda: "sequence_complete" in kinds(fleet), f"the end; told was {kinds(fleet)}", WITHIN_S)
            wait_until(lambda: fleet.records()["builder"].status == "stopped", "the end of the builder")
        except AssertionError as error:
            error.add_note(f"{kinds(fleet)}\n{fleet.screen('builder')}\n{fleet.screen('reviewer')}")
            raise
        finally:
            fleet.end()
            for place in places.values():
                end_all_in(place.home)
    told = [kind for kind in kinds(fleet) if kind != "status"]
    phase = ["phase_advanced", "kicked_off", "kicked_off", "claim", "review"]
    assert told == [*phase, *phase, "sequence_complete"]
    subjects = git(remote, "log", "--reverse", "--format=%an %s", "main").split("\n")
    assert subjects == [
        "ada begin",
        *("builder claim: one", "reviewer review: one", "builder status: one"),
        *("builder claim: two", "reviewer review: two", "builder status: two"),
    ]
    models = {json.dumps(body.get("model")) for _, body in model.requests if "claim: two" in json.dumps(body)}
    assert any("haiku" in each for each in models)


def kinds(fleet: RunningFleet) -> list[str]:
    return [each["kind"] for each in fleet.told("handoff")]
