"""What is wrong with a fleet file: a sentence for each fault, with file, line, key and what is allowed."""

import re
from pathlib import Path

import pytest

from shared.fleet import AgentKind, BadFleetFile, load_fleet
from shared.fleet.faults import MOST_SENTENCES
from tests.unit.shared.fleet.test_fleet import write

TOO_LONG = "x" * 201

Bad = tuple[str, int, str, str]
SEEN_BY_SCHEMA: list[Bad] = [
    # Keys that are not known.
    (
        "host: box\nagnets: {}\n",
        2,
        "agnets",
        "unknown key; did you mean 'agents'? allowed are: adoption, agents, backends,",
    ),
    ("agents:\n  a:\n    bakend: demo\n", 3, "agents.a.bakend", "did you mean 'backend'? allowed are: account,"),
    ("agents:\n  a:\n    zzz: 1\n", 3, "agents.a.zzz", "unknown key; allowed are: account, backend, dir,"),
    ("agents: {a: {restart: {brust: 1}}}\n", 1, "agents.a.restart.brust", "did you mean 'burst'?"),
    ("agents: {a: {watch: {stall: {thn: tell}}}}\n", 1, "agents.a.watch.stall.thn", "did you mean 'then'?"),
    ("\n\nbroker:\n  prot: 1\n", 4, "broker.prot", "allowed are: endpoints, port, websocket_port"),
    (
        "backends: {demo: {screen: {dialogs: [{id: a, mtach: x}]}}}",
        1,
        "backends.demo.screen.dialogs.0.mtach",
        "'match'",
    ),
    ("services: {a: {argv: [x], kind: task}}\n", 1, "services.a.kind", "allowed are: argv, dir, enabled, env,"),
    ("agents:\n  a: &a\n    dri: x\n  b:\n    <<: *a\n", 3, "agents.a.dri", "did you mean 'dir'?"),
    ('"a\\nb\\e[31m": 1\n', 1, "a\\nb\\x1b[31m: unknown key", "allowed are"),
    (f"{TOO_LONG}: 1\n", 1, "xxx", "x…: unknown key"),
    # Words that are not known.
    (
        "agents: {a: {kind: presistent}}\n",
        1,
        "agents.a.kind",
        "did you mean 'persistent'? allowed are: persistent, loop",
    ),
    ("agents: {a: {kind: [x]}}\n", 1, "agents.a.kind", "allowed are: persistent, loop, task"),
    ("agents: {a: {kind: service}}\n", 1, "agents.a.kind", "declared under `services`"),
    (
        "backends: {demo: {deliver: past}}\n",
        1,
        "backends.demo.deliver",
        "did you mean 'paste'? allowed are: arg, paste",
    ),
    ("backends: {demo: {resume: {otherwise: frsh}}}", 1, "backends.demo.resume.otherwise", "did you mean 'fresh'?"),
    ("backends: {demo: {transcript: claud}}\n", 1, "backends.demo.transcript", "did you mean 'claude'?"),
    (
        "agents: {a: {watch: {stall: {then: tel}}}}\n",
        1,
        "agents.a.watch.stall.then",
        "allowed are: nudge, restart, tell",
    ),
    ("version: 2\n", 1, "version", "allowed are: 1"),
    # Numbers.
    ("polls:\n  alone_s: 0\n", 2, "polls.alone_s", "it must be more than 0"),
    ("polls:\n  alone_s: soon\n", 2, "polls.alone_s", "a number is expected"),
    ("polls: {alone_s: 1e300}\n", 1, "polls.alone_s", "it must be 1e+09 or less"),
    ("broker:\n  port: 70000\n", 2, "broker.port", "it must be 65535 or less"),
    ("start: {at_once: 1.5}\n", 1, "start.at_once", "a whole number is expected"),
    ("start: {at_once: many}\n", 1, "start.at_once", "a whole number is expected"),
    ("agents:\n  a:\n    restart:\n      burst: -1\n", 4, "agents.a.restart.burst", "it must be 0 or more"),
    # Wrong types.
    ("broker:\n  endpoints:\n    - mqtt://h\n    - 7\n", 4, "broker.endpoints.1", "a text is expected; put quotes"),
    ("broker:\n  endpoints: mqtt://h\n", 2, "broker.endpoints", "a list is expected, such as [a, b]"),
    ("agents: [a, b]\n", 1, "agents", "a mapping is expected"),
    ("agents:\n", 1, "agents", "it is empty; a mapping is expected"),
    ("agents:\n  a: builder\n", 2, "agents.a", "a mapping is expected, with keys such as: account, backend,"),
    ("agents:\n  a:\n    enabled: maybe\n", 3, "agents.a.enabled", "true or false is expected"),
    ("agents:\n  a:\n    restart: never\n", 3, "agents.a.restart", "with keys such as: burst, burst_s,"),
    ("tmux:\n", 1, "tmux", "it is empty; a mapping is expected, with keys such as: height, socket, width"),
    ("agents:\n  a:\n    env:\n      A: 1\n", 4, "agents.a.env.A", "a text is expected; put quotes around it"),
    ("agents: {a: {prompt: 7}}\n", 1, "agents.a.prompt", "a text is expected"),
    ("agents: {a: {prompt: }}\n", 1, "agents.a.prompt", "it is empty; a text is expected"),
    ("agents: {a: {dir: 7}}\n", 1, "agents.a.dir", "a path is expected"),
    ("services: {a: }\n", 1, "services.a", "with keys such as: argv,"),
    # What is needed, and how much of it.
    ("services: {a: {dir: x}}\n", 1, "services.a.argv", "it is needed; the keys here are: argv,"),
    ("services: {a: {argv: []}}\n", 1, "services.a.argv", "it needs 1 of them at least"),
    ("backends:\n  x:\n    argv: []\n", 3, "backends.x.argv", "it needs 1 of them at least"),
    ("loops: {l: {roles: {b: a}}}\nagents: {a: }\n", 1, "loops.l.remote", "it is needed"),
    ("loops: {l: {remote: '', roles: {b: a}}}\nagents: {a: }\n", 1, "loops.l.remote", "it must not be empty"),
    (f"agents: {{a: {{role: {TOO_LONG}}}}}\n", 1, "agents.a.role", "it must not be longer than 200 characters"),
    # Names.
    ("host: My Box\n", 1, "host", "small letters, digits, `_` and `-`, at most 64 of them"),
    ("agents:\n  ok:\n  Not Ok:\n", 3, "agents.Not Ok", "did you mean 'not-ok'? it may hold small letters, digits,"),
    ("agents: {a.b: }\n", 1, "agents.a.b", "did you mean 'a-b'? it may hold"),
    ("backends: {X: }\n", 1, "backends.X", "did you mean 'x'?"),
    ("agents: {a: {account: A B}}\n", 1, "agents.a.account", "small letters"),
    ("agents: {a: {env_from: [A-B]}}\n", 1, "agents.a.env_from.0", "letters, digits and `_`, and `*` for any part"),
    ("environment: {allow: [A=b]}\n", 1, "environment.allow.0", "the name of an environment variable is expected"),
    ("agents: {a: {env: {1A: x}}}\n", 1, "agents.a.env.…", "the name of an environment variable is expected"),
    ("backends: {demo: {typing: {submit: [Entre]}}}\n", 1, "backends.demo.typing.submit.0", "such as Enter, Escape,"),
    ("tmux: {socket: ''}\n", 1, "tmux.socket", "it must not be empty"),
    (
        "loops: {l: {remote: x, roles: {b: a}, inbox: {/x: b}}}\nagents: {a: }",
        1,
        "loops.l.inbox./x",
        "inside the repos",
    ),
    # One or the other.
    (
        "agents:\n  a: {prompt: x, prompt_file: y}\n",
        2,
        "agents.a",
        "it has `prompt` and `prompt_file`; keep one of them",
    ),
    ("agents: {a: {wake: {}}}\n", 1, "agents.a.wake", "a wake has either `every_s` or `cron`"),
    ("agents: {a: {wake: {every_s: 1, cron: '* * * * *'}}}", 1, "agents.a.wake", "a wake has either"),
    ("agents: {a: {wake: {cron: '* * *'}}}\n", 1, "agents.a.wake.cron", "five fields are expected, as in crontab"),
]
SEEN_BY_THE_LOADER: list[Bad] = [
    # What JSON has not.
    ("polls: {alone_s: .nan}\n", 1, "polls.alone_s", "a number is expected"),
    ("agents:\n  7:\n", 2, "agents.7", "a text is expected; put quotes around it"),
    ("true: 1\n", 1, "1", "a key must be a text; put quotes around it"),
    ("? [a, b]\n: c\n", 1, "…", "a key must be a text"),
    ("agents: {2030-01-01: }\n", 1, "agents.datetime.date(2030, 1, 1)", "a text is expected"),
    ("agents: {a: {prompt: 2030-01-01}}\n", 1, "agents.a.prompt", "a text is expected; put quotes around it"),
    ("agents: {a: {prompt: !secret x}}\n", 1, "agents.a.prompt", "a text is expected"),
    ('agents: {a: {prompt: "a\\0b"}}\n', 1, "agents.a.prompt", "it holds a NUL or half of a surrogate pair"),
    ('services: {a: {argv: [x, "\\ud800"]}}\n', 1, "services.a.argv.1", "it holds a NUL or half of a surrogate pair"),
    # Addresses and regular expressions.
    ("broker:\n  endpoints:\n    - h:1883\n", 3, "broker.endpoints.0", "write it like mqtt://127.0.0.1:1883 or mqtts"),
    ("broker: {endpoints: ['mqtt://u@h']}\n", 1, "broker.endpoints.0", "that is kept in the credentials file"),
    ("backends: {demo: {screen: {box: '('}}}\n", 1, "backends.demo.screen.box", "not a regular expression: missing )"),
    ("backends: {demo: {typing: {command: 'a{99999999999}'}}}", 1, "backends.demo.typing.command", "not a regular exp"),
    (
        "backends: {demo: {screen: {signs: {working: {match: '['}}}}}\n",
        1,
        "backends.demo.screen.signs.working.match",
        "not a regular expression",
    ),
    ("loops: {l: {remote: x, roles: {b: a}, done: '*'}}\nagents: {a: }", 1, "loops.l.done", "not a regular expression"),
    ("backends: {demo: {screen: {box: 'a'}}}\n", 1, "backends.demo.screen.box", "the group (?P<text>…)"),
    ("backends: {demo: {screen: {box: '[(?P<text>]'}}}\n", 1, "backends.demo.screen.box", "the group (?P<text>…)"),
    # Backends.
    ("agents:\n  a:\n    backend: dmeo\n", 3, "agents.a.backend", "there is no backend 'dmeo'; did you mean 'demo'?"),
    ("agents: {a: {backend: service}}\n", 1, "agents.a.backend", "there is no backend 'service'"),
    ("defaults:\n  backend: dmeo\nagents: {a: }\n", 2, "defaults.backend", "did you mean 'demo'?"),
    ("backends: {x: {like: dmeo}}\n", 1, "backends.x.like", "there is no backend 'dmeo'; did you mean 'demo'?"),
    ("backends:\n  x: {like: y}\n  y: {like: zz}\n", 3, "backends.y.like", "there is no backend 'zz'"),
    ("backends: {x: {like: x}}\n", 1, "backends.x.like", "it leads back to itself"),
    ("backends: {demo: {like: demo}}\n", 1, "backends.demo.like", "it leads back to itself"),
    ("backends: {x: {like: y}, y: {like: z}, z: {like: x}}\n", 1, "backends.x.like", "it leads back to itself"),
    ("backends: {x: {like: y}, y: {like: y, binary: z}}\n", 1, "backends.y.like", "it leads back to itself"),
    ("backends:\n  x:\n    env: {}\n", 2, "backends.x", "it has no `binary`: name the program to run"),
    ("backends: {x: }\n", 1, "backends.x", "it has no `binary`"),
    ("backends: {service: {binary: x}}\n", 1, "backends.service", "stands for side services; choose another name"),
    ("backends: {x: {binary: y, argv: ['{binary}', '--m={model_args}']}}", 1, "backends.x.argv.1", "a word of its own"),
    # Names that clash.
    ("agents: {a: }\nservices:\n  a: {argv: [x]}\n", 3, "services.a", "an agent is named 'a' too"),
    ("agents: {muster-keeper: }\n", 1, "agents.muster-keeper", "this name is Muster's own"),
    ("defaults: {kind: service}\n", 1, "defaults.kind", "declared under `services`"),
    # Places.
    ("agents: {a: {dir: ..}}\n", 1, "agents.a.dir", "is outside the allowed workspaces ("),
    ("services: {a: {argv: [x], dir: /}}\n", 1, "services.a.dir", "/ is outside the allowed workspaces ("),
    ("defaults: {dir: /}\nagents:\n  a:\n", 3, "agents.a.dir", "/ is outside the allowed workspaces ("),
    ("workspaces: []\nagents: {a: }\n", 2, "agents.a.dir", "is outside the allowed workspaces (none)"),
    ("workspaces: [/nowhere]\nagents: {a: }\n", 2, "agents.a.dir", "(/nowhere); move it, or add a directory"),
    ("workspaces: ['~nobody-of-that-name']\nagents: {a: }\n", 1, "workspaces.0", "no path can be like this: "),
    ("agents: {a: {dir: ~nobody-of-that-name/x}}\n", 1, "agents.a.dir", "no path can be like this: "),
    ("agents: {a: {prompt_file: ~nobody-of-that-name/x}}\n", 1, "agents.a.prompt_file", "no path can be like this: "),
    ("defaults: {env_file: ~nobody-of-that-name/x}\n", 1, "defaults.env_file", "no path can be like this: "),
    # Loops.
    (
        "loops: {l: {remote: x, roles: {b: aa}}}\nagents: {aaa: }",
        1,
        "loops.l.roles.b",
        "there is no agent 'aa'; did you",
    ),
    (
        "loops: {l: {remote: x, roles: {b: w}}}\nservices: {w: {argv: [x]}}",
        1,
        "loops.l.roles.b",
        "there is no agent 'w'",
    ),
    (
        "loops: {l: {remote: x, roles: {b: a}, patterns: {p: {subject: x, to: bb}}}}\nagents: {a: }\n",
        *(1, "loops.l.patterns.p.to", "no role of this loop and no agent; did you mean 'b'? allowed are: b, a"),
    ),
    (
        "loops: {l: {remote: x, roles: {b: a}, inbox: {f: c}}}\nagents: {a: }",
        1,
        "loops.l.inbox.f",
        "no role of this loop",
    ),
    (
        "loops: {l: {remote: x, roles: {b: a}, phases: [{name: n, models: {c: m}}]}}\nagents: {a: }\n",
        *(1, "loops.l.phases.0.models.c", "no role of this loop; allowed are: b"),
    ),
    ("loops: {l: {remote: x, roles: {b: a}, on_complete: a}}\nagents: {a: }", 1, "loops.l.on_complete", "of kind task"),
]


def fault(path: Path, text: str) -> str:
    """What is said about a bad file."""
    with pytest.raises(BadFleetFile) as caught:
        load_fleet(write(path, text))
    return str(caught.value)


@pytest.mark.parametrize(("text", "line", "key", "says"), [*SEEN_BY_SCHEMA, *SEEN_BY_THE_LOADER])
def test_a_fault_names_file_line_key_and_what_is_allowed(
    tmp_path: Path, text: str, line: int, key: str, says: str
) -> None:
    said = fault(tmp_path, text)
    found = [each for each in said.splitlines() if each.startswith(f"{tmp_path / 'fleet.yaml'}, line {line}: {key}")]
    assert any(says in each for each in found), said
    assert all(re.match(r".+fleet\.yaml, line \d+: ", each) for each in said.splitlines()), said
    assert "pydantic" not in said


def test_a_kind_that_the_defaults_give_counts_in_a_loop(tmp_path: Path) -> None:
    text = "defaults: {kind: task}\nagents: {a: }\nloops: {l: {remote: x, roles: {b: a}, on_complete: a}}\n"
    fleet = load_fleet(write(tmp_path, text))
    assert (fleet.agents["a"].kind, fleet.declared.loops["l"].on_complete) == (AgentKind.TASK, "a")


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    said = fault(tmp_path, "hots: box\nagents:\n  a:\n    enabled: maybe\n")
    assert sorted(re.findall(r"^.+, line (\d+): ", said, re.MULTILINE)) == ["1", "4"]
    said = fault(tmp_path, "agents:\n  a:\n    backend: x\n  b:\n    dir: /\nbackends:\n  y:\n")
    assert sorted(re.findall(r"^.+, line (\d+): ", said, re.MULTILINE)) == ["3", "5", "7"]


def test_the_number_of_reported_faults_is_limited(tmp_path: Path) -> None:
    said = fault(tmp_path, "agents:\n" + "".join(f"  a{number}: {{zz: 1}}\n" for number in range(100)))
    assert len(said.splitlines()) == MOST_SENTENCES + 1
    assert said.endswith(f"\nand {100 - MOST_SENTENCES} more")
