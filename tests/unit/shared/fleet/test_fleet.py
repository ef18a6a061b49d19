"""What a good fleet file comes to: defaults below agents, shipped backends below declared ones, paths from the file."""

import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.fleet import SIDE_SERVICE, Agent, AgentKind, Backend, Declaration, Fleet, PromptDelivery, load_fleet
from shared.fleet.fleet import overlay
from shared.fleet.policies import Then, Wake
from shared.fleet.profiles import shipped

GOOD = {
    "nothing": "",
    "a comment": "# nothing yet\n",
    "no agents": "agents: {}\n",
    "a marker": "---\n",
    "an empty mapping": "{}\n",
    "a bare agent": "agents:\n  builder:\n  tester: {}\n",
    "a bare backend": "backends: {demo: }\n",
    "old words for no": "agents: {a: {enabled: off, resume: 'no'}, b: {enabled: on}}\n",
    "an anchor": "agents:\n  a: &a {role: x, env: {A: b}}\n  b: *a\n",
    "a merge key": "agents:\n  a: &a {role: x, restart: {burst: 1}}\n  b: {<<: *a, role: y}\n",
    "a block text": "agents:\n  a:\n    prompt: |\n      first\n      second\n",
    "no prompt but a file": "agents: {a: {prompt: '', prompt_file: x}, b: {prompt: x, prompt_file: null}}\n",
    "nulls": "host:\nagents: {a: {model: , account: , env_file: , wake: }}\nbroker: {port: }\n",
    "wakes": "agents: {a: {wake: {every_s: 60}}, b: {wake: {cron: '0 9 * * 1-5', every_s: }}}\n",
    "keys of all kinds": "backends: {demo: {typing: {submit: [Enter, C-c, M-Enter, F12, Up, a, '1']}}}\n",
    "a like": "backends: {mine: {like: demo}, yours: {like: mine, binary: x}}\nagents: {a: {backend: yours}}\n",
    "a side service": "services: {web: {argv: [python3, -m, http.server], restart: {burst: 1}, env: {A: b}}}\n",
    "an own broker": "broker: {endpoints: ['mqtt://h:1883', mqtts://broker.example], websocket_port: 0}\n",
    "a root elsewhere": "workspaces: [., /nowhere]\nagents: {a: {dir: /nowhere/at/all}}\n",
    "a loop": """\
        agents: {builder: {kind: loop}, reviewer: {kind: loop}, tidy: {kind: task}}
        loops:
          main:
            remote: /srv/thing.git
            roles: {build: builder, review: reviewer}
            patterns: {p: {subject: "^review:", to: build}}
            inbox: {notes/a.md: build}
            phases: [{name: one}, {name: two, models: {review: large}}]
            on_complete: tidy
        """,
    "much of it": """\
        version: 1
        host: box
        prefix: team
        tmux: {socket: work, width: 100, height: 40}
        broker: {endpoints: ["mqtt://h:1883"], port: 1, websocket_port: 65535}
        polls: {connected_s: 1, alone_s: 0.5}
        logs: {max_mb: 0.5, keep: 0}
        start: {at_once: 1, gap_s: 0}
        restarts: {burst: 1, burst_s: 1, sustained: 1, sustained_s: 1}
        environment: {allow: [PATH, "LC_*", "*"]}
        workspaces: [., work]
        defaults: {role: helper}
        backends:
          mine: {binary: run, argv: ["{binary}", "{prompt}"], env: {A: b}, env_from: [X_*]}
        agents:
          builder:
            backend: mine
            dir: work
            prompt: hello
            env: {C: d}
            enabled: false
            restart: {first_wait_s: 0, longest_wait_s: 9, burst: 0, burst_s: 1}
            watch: {stall: {then: tell}, limits: {resume: false}, health: {every_s: 5}}
        """,
}


def write(path: Path, text: str) -> Path:
    file = path / "fleet.yaml" if path.is_dir() else path
    file.write_text(textwrap.dedent(text), encoding="utf-8")
    return file


def fleet_of(path: Path, text: str) -> Fleet:
    return load_fleet(write(path, text))


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_a_good_file_is_read(tmp_path: Path, text: str) -> None:
    fleet = fleet_of(tmp_path, text)
    assert set(fleet.agents) == {*fleet.declared.agents, *fleet.declared.services}


@pytest.mark.parametrize("text", [GOOD[name] for name in ("nothing", "a comment", "no agents", "a marker")])
def test_a_fleet_may_be_empty(tmp_path: Path, text: str) -> None:
    assert fleet_of(tmp_path, text).declared == Declaration()


def test_a_bare_agent_has_every_default(tmp_path: Path) -> None:
    agents = fleet_of(tmp_path, GOOD["a bare agent"]).agents
    assert agents["builder"] == agents["tester"] == Agent()


def test_what_is_written_is_read(tmp_path: Path) -> None:
    fleet = fleet_of(tmp_path, GOOD["much of it"])
    agent = fleet.agents["builder"]
    assert (agent.backend, str(agent.dir), agent.enabled, agent.restart.burst) == ("mine", "work", False, 0)
    assert (agent.role, agent.watch.stall.then, agent.watch.limits.resume) == ("helper", [Then.TELL], False)
    assert (fleet.space.host, fleet.space.prefix) == ("box", "team")
    assert (fleet.declared.tmux.width, fleet.declared.start.at_once) == (100, 1)


def test_old_words_for_no_switch_an_agent_off(tmp_path: Path) -> None:
    agents = fleet_of(tmp_path, GOOD["old words for no"]).agents
    assert (agents["a"].enabled, agents["a"].resume, agents["b"].enabled) == (False, False, True)


def test_musters_own_files_are_beside_the_fleet_file(tmp_path: Path) -> None:
    fleet = fleet_of(tmp_path, "")
    assert fleet.journal == tmp_path / ".muster" / "journal.db"
    assert fleet.registry == tmp_path / ".muster" / "registry.yaml"


def test_two_fleets_mark_their_sessions_apart(tmp_path: Path) -> None:
    stamps = {Fleet(tmp_path / name / "fleet.yaml", Declaration()).stamp for name in ("a", "b", "b")}
    assert len(stamps) == 2


def test_a_host_without_a_name_of_its_own_is_called_by_its_host_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "Big.Box.example")
    assert fleet_of(tmp_path, "").space.host == "big-box-example"


# --- defaults below agents ---


def agents_of(path: Path, text: str) -> Any:
    return fleet_of(path, text).agents


def test_an_agent_has_what_the_defaults_say_where_it_says_nothing(tmp_path: Path) -> None:
    text = (
        "defaults: {role: r, model: m, restart: {burst: 1, burst_s: 7}}\nagents: {a: {model: n, restart: {burst: 2}}}"
    )
    agent = agents_of(tmp_path, text)["a"]
    assert (agent.role, agent.model, agent.restart.burst, agent.restart.burst_s) == ("r", "n", 2, 7)


def test_what_is_said_counts_though_it_is_what_holds_anyway(tmp_path: Path) -> None:
    text = "defaults: {enabled: false, model: m}\nagents: {a: {enabled: true, model: null}, b: }"
    agents = agents_of(tmp_path, text)
    assert (agents["a"].enabled, agents["a"].model) == (True, None)
    assert (agents["b"].enabled, agents["b"].model) == (False, "m")


def test_variables_are_merged_and_lists_are_replaced(tmp_path: Path) -> None:
    text = "defaults: {env: {A: 1a, B: 1b}, env_from: [X, Y]}\nagents: {a: {env: {B: 2b, C: 2c}, env_from: [Z]}}"
    agent = agents_of(tmp_path, text)["a"]
    assert {name: value.get_secret_value() for name, value in agent.env.items()} == {"A": "1a", "B": "2b", "C": "2c"}
    assert agent.env_from == ["Z"]


@pytest.mark.parametrize(
    ("below", "above", "prompt", "file"),
    [
        ("prompt: x", "prompt_file: y", "", Path("y")),
        ("prompt_file: x", "prompt: y", "y", None),
        ("prompt_file: x", "prompt: ''", "", None),
        ("prompt_file: x", "role: y", "", Path("x")),
        ("prompt: x", "prompt: y", "y", None),
        ("prompt: x", "prompt_file: null", "", None),
    ],
)
def test_a_prompt_takes_the_place_of_a_prompt_file_and_the_other_way_round(
    tmp_path: Path, below: str, above: str, prompt: str, file: Path | None
) -> None:
    agent = agents_of(tmp_path, f"defaults: {{{below}}}\nagents: {{a: {{{above}}}}}\n")["a"]
    assert (agent.prompt, agent.prompt_file) == (prompt, file)


def test_a_wake_is_taken_whole(tmp_path: Path) -> None:
    text = "defaults: {wake: {every_s: 5, text: x}}\nagents: {a: {wake: {cron: '* * * * *'}}, b: {wake: null}, c: }\n"
    agents = agents_of(tmp_path, text)
    assert agents["a"].wake == Wake(cron="* * * * *")
    assert agents["b"].wake is None
    assert agents["c"].wake == Wake(every_s=5, text="x")


names = st.text("abc", min_size=1, max_size=2)
some_agents = st.fixed_dictionaries(
    {},
    optional={
        "role": names,
        "model": st.none() | names,
        "enabled": st.booleans(),
        "env": st.dictionaries(st.sampled_from(["A", "B", "C"]), names),
        "restart": st.fixed_dictionaries({}, optional={"burst": st.integers(0, 3), "burst_s": st.integers(1, 3)}),
        "prompt": names,
    },
).map(Agent.model_validate)


@given(some_agents, some_agents, some_agents)
def test_putting_over_is_the_same_however_it_is_grouped(low: Agent, middle: Agent, high: Agent) -> None:
    assert overlay(low, Agent()) == low
    assert overlay(Agent(), low) == low
    assert overlay(overlay(low, middle), high) == overlay(low, overlay(middle, high))
    assert overlay(low, high).role == (high if "role" in high.model_fields_set else low).role


# --- side services ---


def test_a_side_service_is_an_agent_that_nobody_types_into(tmp_path: Path) -> None:
    fleet = fleet_of(tmp_path, "defaults: {role: x}\n" + GOOD["a side service"])
    agent, profile = fleet.agents["web"], fleet.profile("web")
    assert (agent.kind, agent.backend, agent.role, agent.resume) == (AgentKind.SERVICE, SIDE_SERVICE, "", False)
    assert (profile.binary, profile.argv, profile.deliver) == (
        "python3",
        ["{binary}", "-m", "http.server"],
        PromptDelivery.ARG,
    )
    assert agent.env["A"].get_secret_value() == "b"


# --- backends ---


def test_one_field_of_a_shipped_backend_is_changed_and_the_rest_stays(tmp_path: Path) -> None:
    fleet = fleet_of(tmp_path, "backends: {demo: {extra_args: [-x], typing: {settle_s: 2}, env: {A: b}}}\n")
    was, found = shipped()["demo"], fleet.backends["demo"]
    assert (found.extra_args, found.typing.settle_s, list(found.env)) == (["-x"], 2, [*was.env, "A"])
    unchanged = was.model_copy(update={"typing": was.typing.model_copy(update={"settle_s": 2})})
    assert found == unchanged.model_copy(update={"extra_args": ["-x"], "env": found.env})


def test_a_chain_of_likes_is_followed_and_sees_changes_of_what_it_is_like(tmp_path: Path) -> None:
    text = """\
        backends:
          third: {like: second, extra_args: [c]}
          second: {like: demo, binary: two, typing: {clear: [C-a]}}
          demo: {install: changed, typing: {settle_s: 3}}
        agents: {a: {backend: third}}
        """
    found = fleet_of(tmp_path, text).profile("a")
    assert (found.binary, found.install, found.extra_args) == ("two", "changed", ["c"])
    assert (found.typing.settle_s, found.typing.clear) == (3, ["C-a"])
    assert found.argv == shipped()["demo"].argv


def test_a_backend_that_is_like_none_begins_with_nothing(tmp_path: Path) -> None:
    fleet = fleet_of(tmp_path, "backends: {mine: {binary: x}}\n")
    assert fleet.backends["mine"] == Backend(binary="x")
    assert "nobody" not in fleet.backends


def test_a_shipped_name_can_be_given_to_another_kind(tmp_path: Path) -> None:
    fleet = fleet_of(tmp_path, "backends: {mine: {binary: x}, demo: {like: mine}}\n")
    assert fleet.backends["demo"].argv == Backend().argv


# --- workspaces ---


@pytest.mark.parametrize(
    ("roots", "directory", "may"),
    [
        ("[.]", ".", True),
        ("[.]", "work", True),
        ("[.]", "not/there/yet", True),
        ("[.]", "work/../work", True),
        ("[.]", "..", False),
        ("[.]", "work/../..", False),
        ("[.]", "/", False),
        ("[.]", "~", False),
        ("['~']", "~/x", True),
        ("[work]", ".", False),
        ("[work]", "work/deeper", True),
        ("[work]", "workshop", False),
        ("[/nowhere]", "/nowhere", True),
        ("[link-in]", "work", True),
        ("[.]", "link-in", True),
        ("[.]", "link-out", False),
        ("[.]", "link-out/deeper", False),
        ("[.]", "link-out/..", False),
        ("[.]", "link-out/../home", True),
        ("[., link-out]", "link-out/deeper", True),
        ("[]", ".", False),
    ],
)
def test_agents_run_below_the_roots_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, roots: str, directory: str, may: bool
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "elsewhere"))
    home = tmp_path / "home"
    for place in (home / "work", home / "workshop", tmp_path / "elsewhere"):
        place.mkdir(parents=True)
    (home / "link-in").symlink_to("work")
    (home / "link-out").symlink_to(tmp_path / "elsewhere")
    file = write(home, f"workspaces: {roots}\n")
    fleet = load_fleet(file)
    assert fleet.allows(fleet.resolve(Path(directory))) is may
