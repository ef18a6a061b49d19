"""From the fleet file's words to an argv: filled in, never through a shell, and a sentence when it can't be."""

import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.spawner.sessions.launch import (
    LONGEST_ARGUMENT,
    CannotStart,
    Launch,
    LaunchOverrides,
    ResumeTarget,
    plan,
    workspace_of,
)
from shared.errors import MusterError
from shared.fleet import Declaration, Fleet
from shared.fleet.launch_needs import fill, spliced

VALUES = {"python": "/bin/python", "backends": "/b", "agent": "builder", "prompt": "do {agent} $(rm) it"}


def program(directory: Path, name: str = "run", mode: int = 0o755) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / name
    file.write_text("#!/bin/sh\n")
    file.chmod(mode)
    return file


@pytest.fixture
def ground(tmp_path: Path) -> Path:
    """A directory for a fleet file, with a program `run` on a PATH of its own."""
    program(tmp_path / "bin")
    return tmp_path


def fleet_at(directory: Path, backend: dict[str, Any] | None = None, **agent: Any) -> Fleet:
    declared = {
        "backends": {"mine": {"binary": "run", "deliver": "arg", **(backend or {})}},
        "agents": {"builder": {"backend": "mine", **agent}},
        "services": {"web": {"argv": ["run", "--port", "80"], "env": {"A": "b"}}},
    }
    return Fleet(directory / "fleet.yaml", Declaration.model_validate(declared))


def planned(
    directory: Path,
    backend: dict[str, Any] | None = None,
    order: LaunchOverrides | None = None,
    resume: ResumeTarget | None = None,
    **agent: Any,
) -> Launch:
    own = {"PATH": str(directory / "bin"), "HIDDEN": "x"}
    return plan(fleet_at(directory, backend, **agent), "builder", "s1", own, order, resume)


# --- filling in ---


@pytest.mark.parametrize(
    ("word", "filled"),
    [
        ("{agent}", "builder"),
        ("--name={agent}", "--name=builder"),
        ("{backends}/{agent}.py", "/b/builder.py"),
        ("{prompt}", "do {agent} $(rm) it"),
        ("{python}", "/bin/python"),
        ('{"json": true}', '{"json": true}'),
        ("{unknown}", "{unknown}"),
        ("{}", "{}"),
        ("{{agent}}", "{builder}"),
        ("", ""),
        ("plain", "plain"),
    ],
)
def test_names_in_braces_are_filled_in_and_other_braces_stay(word: str, filled: str) -> None:
    assert fill(word, VALUES) == filled


tricky = st.text("{}ab", max_size=8) | st.sampled_from(["{a}", "{b}", "{{a}}", "{args}", "\\1", "\\g<0>"])


@given(
    st.lists(st.sampled_from(["{a}", "{b}", "{args}", "x", "{c}", "-{a}-"]), max_size=5),
    tricky,
    tricky,
    st.lists(tricky),
)
def test_what_was_filled_in_is_not_filled_again(words: list[str], a: str, b: str, args: list[str]) -> None:
    """Values are the prompt's and the model's words: what stands in them is nobody's placeholder."""
    found = [fill(word, {"a": a, "b": b}) for word in words]
    by_hand = {"{a}": a, "{b}": b, "-{a}-": f"-{a}-"}
    assert found == [by_hand.get(word, word) for word in words]
    whole = spliced(words, {"args": args})
    assert whole == [each for word in words for each in (args if word == "{args}" else [word])]


def test_a_list_stands_where_its_word_is_and_only_as_a_whole_word() -> None:
    lists = {"more": ["a", "{more}"], "none": []}
    assert spliced(["x", "{more}", "{none}", "y{more}"], lists) == ["x", "a", "{more}", "y{more}"]


# --- the command line ---


def test_a_plan_holds_all_that_tmux_needs(ground: Path) -> None:
    (ground / "work").mkdir()
    backend = {"env": {"SHARED": "backend", "ONE": "1"}, "fresh_args": ["--id", "{session}"], "extra_args": ["-x"]}
    launch = planned(ground, backend, dir="work", env={"SHARED": "agent", "TWO": "2"}, prompt="go")
    conversation = launch.conversation
    assert conversation is not None
    assert uuid.UUID(conversation).version == 4
    assert launch == Launch(
        agent="builder",
        backend="mine",
        argv=[str(ground / "bin" / "run"), "-x", "--id", conversation, "go"],
        workspace=ground / "work",
        env={"SHARED": "agent", "ONE": "1", "TWO": "2", "PATH": str(ground / "bin"), "MUSTER_HOOKS": "none"},
        conversation=conversation,
        resumed=False,
        paste="",
        prompt_file=None,
        prompt="go",
    )
    assert "agent'" not in repr(launch).partition("workspace")[2]


def test_the_same_spawn_has_the_same_conversation_and_another_has_another(ground: Path) -> None:
    fleet = fleet_at(ground, {"fresh_args": ["{session}"]})
    own = {"PATH": str(ground / "bin")}
    ids = [plan(fleet, "builder", spawn, own).conversation for spawn in ("s1", "s1", "s2")]
    assert ids[0] == ids[1] != ids[2]


def test_what_the_environment_of_an_agent_shows_is_not_in_the_words_for_it(ground: Path) -> None:
    assert "hunter2" not in repr(planned(ground, env={"PASSWORD": "hunter2"}))


def test_a_prompt_is_one_word_whatever_it_holds(ground: Path) -> None:
    prompt = "first line\nsecond; rm -rf ~ {agent} {extra_args} '\""
    assert planned(ground, {"extra_args": ["-x"]}, prompt=prompt).argv[1:] == ["-x", prompt]


def test_without_a_prompt_there_is_no_word_for_it(ground: Path) -> None:
    assert planned(ground, {"prompt_args": ["--", "{prompt}"]}).argv[1:] == []


def test_the_shipped_backend_can_be_planned(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path / "fleet.yaml", Declaration.model_validate({"agents": {"builder": {"prompt": "hi"}}}))
    launch = plan(fleet, "builder", "s1", {})
    assert launch.argv[0] == sys.executable
    assert launch.argv[-1].endswith("hi")
    assert not any("{" in word for word in launch.argv)
    assert any(Path(word).name == "demo_agent.py" and Path(word).is_file() for word in launch.argv)


def test_a_side_service_is_its_command_line(ground: Path) -> None:
    launch = plan(fleet_at(ground), "web", "s1", {"PATH": str(ground / "bin")})
    assert launch.argv == [str(ground / "bin" / "run"), "--port", "80"]
    assert (launch.backend, launch.env["A"], launch.paste, launch.conversation) == ("service", "b", "", None)


# --- how the prompt gets there ---


@pytest.mark.parametrize(
    ("deliver", "argument", "paste", "file"),
    [("arg", ["go"], "", False), ("paste", [], "go", False), ("exec", [], "", True)],
)
def test_a_prompt_is_delivered_one_way(ground: Path, deliver: str, argument: list[str], paste: str, file: bool) -> None:
    launch = planned(ground, {"deliver": deliver}, prompt="go")
    assert (launch.argv[1:], launch.paste) == (argument, paste)
    assert launch.prompt_file == (ground / ".muster" / "prompts" / "builder.txt" if file else None)


def test_a_prompt_too_long_for_a_command_line_is_pasted(ground: Path) -> None:
    prompt = "ä" * (LONGEST_ARGUMENT // 2)
    assert planned(ground, prompt=prompt).argv[1:] == [prompt]
    launch = planned(ground, prompt=prompt + "!")
    assert (launch.argv[1:], launch.paste) == ([], prompt + "!")


@pytest.mark.parametrize("where", ["argv", "prompt_args", "extra_args"])
def test_a_prompt_named_as_a_file_is_one(ground: Path, where: str) -> None:
    words = ["{binary}", "-f", "{prompt_file}"] if where == "argv" else ["-f", "{prompt_file}"]
    launch = planned(ground, {where: words}, prompt="go")
    file = ground / ".muster" / "prompts" / "builder.txt"
    assert launch.prompt_file == file
    assert launch.argv[1:3] == ["-f", str(file)]


def test_a_long_prompt_that_goes_by_a_file_is_not_pasted_too(ground: Path) -> None:
    launch = planned(ground, {"prompt_args": ["-f", "{prompt_file}"]}, prompt="x" * (LONGEST_ARGUMENT + 1))
    assert launch.paste == ""
    assert launch.argv[1] == "-f"


def test_a_prompt_file_is_read_at_every_start(ground: Path) -> None:
    (ground / "prompt.md").write_text("first")
    assert planned(ground, prompt_file="prompt.md").prompt == "first"
    (ground / "prompt.md").write_text("second")
    assert planned(ground, prompt_file="prompt.md").prompt == "second"


# --- models, and orders for one start ---


def test_a_model_is_named_by_argument_and_by_environment(ground: Path) -> None:
    backend = {"model": {"args": ["--model", "{model}"], "env": "MODEL"}}
    launch = planned(ground, backend, model="large", env={"MODEL": "other"})
    assert (launch.argv[1:], launch.env["MODEL"]) == (["--model", "large"], "large")
    launch = planned(ground, backend)
    assert (launch.argv[1:], "MODEL" in launch.env) == ([], False)


def test_one_start_may_differ_from_the_file(ground: Path) -> None:
    (ground / "other").mkdir()
    backend = {"model": {"args": ["-m", "{model}"]}}
    order = LaunchOverrides(prompt="this once", model="small", dir="other")
    launch = planned(ground, backend, order, prompt="as ever", model="large")
    assert launch.argv[1:] == ["-m", "small", "this once"]
    assert launch.workspace == ground / "other"
    assert planned(ground, order=LaunchOverrides(prompt=""), prompt="as ever").argv[1:] == []
    assert planned(ground, order=LaunchOverrides(backend="demo")).backend == "demo"


@pytest.mark.parametrize(
    ("order", "says"),
    [
        (
            LaunchOverrides(backend="gone"),
            r"agent 'builder' can't run on the backend 'gone'; the fleet file has: .*demo.*mine",
        ),
        (LaunchOverrides(dir="/"), r"agent 'builder' can't be started: / is outside the allowed workspaces"),
        (LaunchOverrides(dir="../.."), "is outside the allowed workspaces"),
        (LaunchOverrides(dir="~nobody-of-that-name"), "no path can be like this"),
        (LaunchOverrides(dir="a\0b"), "no path can be like this"),
        (LaunchOverrides(dir="nowhere"), "nowhere of agent 'builder' is not a directory"),
    ],
)
def test_an_order_that_can_not_be_is_refused(ground: Path, order: LaunchOverrides, says: str) -> None:
    with pytest.raises(CannotStart, match=says):
        planned(ground, order=order)


def test_a_side_service_runs_on_no_backend(ground: Path) -> None:
    with pytest.raises(CannotStart, match="agent 'web' can't run on the backend 'demo'"):
        plan(fleet_at(ground), "web", "s1", {}, LaunchOverrides(backend="demo"))


# --- taking up a conversation ---

CAN_RESUME = {
    "resume": {"args": ["--resume", "{session}"], "latest": ["--continue"]},
    "fresh_args": ["--id", "{session}"],
}


@pytest.mark.parametrize(
    ("resume", "argv"),
    [(ResumeTarget("c1"), ["--resume", "c1", "go on"]), (ResumeTarget(), ["--continue", "go on"])],
)
def test_a_conversation_is_taken_up_by_its_id_or_as_the_newest(
    ground: Path, resume: ResumeTarget, argv: list[str]
) -> None:
    launch = planned(ground, CAN_RESUME, resume=resume, prompt="begin", resume_prompt="go on")
    assert (launch.argv[1:], launch.resumed, launch.conversation) == (argv, True, resume.id)


@pytest.mark.parametrize("resume", [ResumeTarget("c1"), ResumeTarget()])
def test_a_backend_that_can_not_resume_begins_anew(ground: Path, resume: ResumeTarget) -> None:
    launch = planned(ground, resume=resume, prompt="begin", resume_prompt="go on")
    assert (launch.argv[1:], launch.resumed) == (["begin"], False)


def test_a_prompt_that_a_resumed_agent_would_not_heed_is_pasted(ground: Path) -> None:
    backend = {"resume": {"args": ["-r", "{session}"], "takes_prompt": False}}
    launch = planned(ground, backend, resume=ResumeTarget("c1"), resume_prompt="go on")
    assert (launch.argv[1:], launch.paste) == (["-r", "c1"], "go on")


# --- the program ---


def test_without_a_binary_the_first_word_is_the_program(ground: Path) -> None:
    launch = planned(ground, {"binary": "", "argv": ["run", "--fast"]})
    assert launch.argv == [str(ground / "bin" / "run"), "--fast"]
    with pytest.raises(CannotStart, match="needs the program 'no-such'"):
        planned(ground, {"binary": "", "argv": ["no-such", "--fast"]})
    with pytest.raises(CannotStart, match="needs the program"):
        planned(ground, {"binary": "", "argv": ["{extra_args}"]})


def test_a_program_by_its_path_is_from_where_the_file_is_and_keeps_its_name(ground: Path) -> None:
    """A link in a virtual environment is not what it leads to."""
    program(ground / "elsewhere", "real")
    (ground / "linked").symlink_to("elsewhere/real")
    assert planned(ground, {"binary": "./linked"}).argv[0] == str(ground / "linked")


def test_a_program_is_looked_for_on_the_agents_path(ground: Path) -> None:
    other = program(ground / "other", "special")
    assert planned(ground, {"binary": "special"}, env={"PATH": str(ground / "other")}).argv[0] == str(other)


@pytest.mark.parametrize(
    "binary", ["no-such", "./no-such", "bin", "./bin", "plain", "./plain", "DEBUG=1", "a\0b", "~nobody/x"]
)
def test_a_program_that_can_not_be_run_is_a_sentence(ground: Path, binary: str) -> None:
    program(ground, "plain", 0o644)
    with pytest.raises(CannotStart, match=r"the backend 'mine' needs the program .*; install it with: get it"):
        planned(ground, {"binary": binary, "install": "get it"})


# --- places and files ---


@pytest.mark.parametrize(("given", "found"), [(".", "."), ("a/../b", "b"), ("link", "b")])
def test_a_workspace_is_relative_to_the_fleet_file(ground: Path, given: str, found: str) -> None:
    (ground / "a").mkdir()
    (ground / "b").mkdir()
    (ground / "link").symlink_to("b")
    assert workspace_of(fleet_at(ground, dir=given), "builder") == (ground / found).resolve()


def test_a_link_that_leads_out_since_the_file_was_read_is_refused(ground: Path) -> None:
    (ground / "home" / "work").mkdir(parents=True)
    fleet = fleet_at(ground / "home", dir="work")
    assert workspace_of(fleet, "builder") == ground / "home" / "work"
    (ground / "home" / "work").rmdir()
    (ground / "home" / "work").symlink_to(ground)
    with pytest.raises(CannotStart, match="is outside the allowed workspaces"):
        workspace_of(fleet, "builder")


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        ({"dir": "nowhere"}, r"the workspace .*nowhere of agent 'builder' is not a directory"),
        ({"dir": "bin/run"}, "is not a directory"),
        ({"dir": "~nobody-of-that-name/work"}, "no path can be like this"),
        ({"dir": "a\0b"}, "no path can be like this"),
        ({"dir": "loop"}, "no path can be like this|is not a directory"),
        ({"prompt_file": "nowhere"}, r"the prompt_file .*nowhere of agent 'builder' can't be read: No such file"),
        ({"prompt_file": "bin"}, "can't be read: Is a directory"),
        ({"prompt_file": "~nobody-of-that-name/x"}, "can't be read: no path"),
        ({"env_file": "nowhere"}, "the env_file of agent 'builder' can't be read: No such file"),
        ({"env_file": "~nobody-of-that-name/x"}, "can't be read: no path"),
        ({"env_file": "bin/run"}, r"can be read by others; make it private with: chmod 600 .*run"),
    ],
)
def test_what_is_not_there_is_a_sentence(ground: Path, agent: dict[str, Any], says: str) -> None:
    """Any other error would keep the spawner from looking after all the other agents."""
    (ground / "loop").symlink_to("loop")
    with pytest.raises(MusterError, match=says):
        planned(ground, **agent)


# --- the environment ---


def test_variables_come_from_muster_the_backend_a_file_and_the_agent_in_this_order(ground: Path) -> None:
    file = ground / "secrets"
    file.write_text("B=file\nC=file\n")
    file.chmod(0o600)
    fleet = fleet_at(
        ground, {"env": {"A": "backend", "B": "backend"}, "env_from": ["X_*"]}, env_file="secrets", env={"C": "c"}
    )
    own = {"PATH": str(ground / "bin"), "A": "own", "X_1": "x", "Y_1": "y", "HOME": "/h"}
    assert plan(fleet, "builder", "s1", own).env == {
        **{"PATH": str(ground / "bin"), "HOME": "/h", "X_1": "x"},
        **{"A": "backend", "B": "file", "C": "c"},
        "MUSTER_HOOKS": "none",
    }


def test_an_agent_may_be_let_see_more(ground: Path) -> None:
    assert planned(ground, env_from=["HID*"]).env["HIDDEN"] == "x"
    assert "HIDDEN" not in planned(ground).env


# --- hooks ---

HOOKS = {"kind": "claude", "args": ["--settings", "{hooks_file}"], "env": {"THERE": "{hooks_file}"}}


def test_hooks_are_given_where_the_command_line_has_a_place_for_them(ground: Path) -> None:
    launch = planned(ground, {"hooks": HOOKS, "extra_args": ["-x"]}, prompt="{hooks_args} {hooks_file}")
    file = str(ground / ".muster" / "hooks" / "claude.json")
    assert launch.argv[1:] == ["-x", "--settings", file, "{hooks_args} {hooks_file}"]
    assert (launch.env["THERE"], launch.env["MUSTER_HOOKS"], launch.hooks.file) == (file, "given", Path(file))


def test_a_prompt_that_is_a_placeholder_stays_a_prompt(ground: Path) -> None:
    assert planned(ground, {"hooks": HOOKS}, prompt="{hooks_args}").argv[-1] == "{hooks_args}"


@pytest.mark.parametrize(
    "backend",
    [{"hooks": None}, {"hooks": HOOKS, "extra_args": ["--settings=x"]}, {"hooks": HOOKS, "argv": ["{binary}"]}],
)
def test_without_hooks_nothing_of_them_is_seen(ground: Path, backend: dict[str, Any]) -> None:
    launch = planned(ground, backend)
    silent = backend["hooks"] is None  # what is installed tells nothing in its name, unless it is its own
    assert launch.env.get("MUSTER_HOOKS") == ("none" if silent else None)
    assert not any("claude.json" in word for word in launch.argv)
    assert bool(launch.hooks.withheld) is (backend["hooks"] is not None)
