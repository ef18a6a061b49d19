"""Who may import whom, who may start programs, and what must stay pure. Each rule is shown to be able to fail."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("services", "shared", "registry")

LAYERS = (
    "shared.errors",
    "shared.version",
    "shared.generated",
    "shared.contract",
    "shared.system",
    "shared.messaging",
    "shared.fleet",
    "shared.screen",
    "shared.agents",
    "shared.runtime",
    "shared.client",
)
"""Each may import what stands before it, and itself. Every module of `shared` is in one of them."""

ANYBODY_MAY_IMPORT = ("shared.agents.parts",)
"""The index of the agents' folders imports nothing, and the fleet file's models take their names from it."""

LATE_IMPORTS = {("shared.fleet.check", "shared.screen")}
"""Upwards, but only inside a function: a rule that a person wrote is tried on its samples when the file is read."""

STARTS_PROGRAMS = (
    "shared.system.tmux*",
    "shared.system.child_process",
    "shared.agents.demo.demo_script",
    "services.cli.supervision",
    "services.cli.test",
    "services.cli.bootstrap",
    "services.cli.example",
    "services.cli.doctor",
)
"""The modules that may import `subprocess`."""

BECOMES_A_PROGRAM = ("services.broker.__main__", "services.cli.reconcile", "services.cli.bootstrap")
"""The modules that may replace their process by another program."""

IMPURE_IMPORTS = {
    *("subprocess", "socket", "os", "shutil", "tempfile", "io", "sqlite3", "threading", "queue", "asyncio"),
    *("random", "secrets", "uuid", "logging", "signal", "select", "selectors", "urllib", "http", "paho", "psutil"),
    *("shared.messaging.journal", "shared.messaging.bus", "shared.messaging.inbox", "shared.system.log"),
    *("shared.runtime.loop", "shared.runtime.bootstrap", "shared.system.child_process.run"),
}
CLOCKS = {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "now", "utcnow", "today", "sleep"}
FILE_METHODS = {
    *("open", "read_text", "read_bytes", "write_text", "write_bytes", "mkdir", "unlink", "rename", "replace", "touch"),
    *("rmdir", "chmod", "symlink_to", "stat", "exists", "is_file", "is_dir", "iterdir", "glob"),
}


@dataclass(frozen=True)
class Module:
    name: str
    source: str
    is_package: bool = False

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)

    @cached_property
    def claims_to_be_pure(self) -> bool:
        """Its docstring says so; then it is held to it."""
        return re.search(r"\bPure\b", ast.get_docstring(self.tree) or "") is not None

    def resolve(self, node: ast.ImportFrom) -> str:
        """The absolute name that `from … import` starts from."""
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        base = parts[: len(parts) - node.level + self.is_package]
        return ".".join([*base, *([node.module] if node.module else [])])

    def _named(self, nodes: Iterable[ast.AST]) -> Iterator[str]:
        for node in nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                start = self.resolve(node)
                yield start
                yield from (f"{start}.{alias.name}" for alias in node.names)

    @cached_property
    def imports(self) -> set[str]:
        """Every dotted name that is imported anywhere in the module, inside functions too."""
        return set(self._named(ast.walk(self.tree)))

    @cached_property
    def imports_at_once(self) -> set[str]:
        """What is imported while the module itself is."""
        return set(self._named(self.tree.body))

    def calls(self) -> Iterator[ast.Call]:
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.Call))


@cache
def modules(root: Path = ROOT) -> tuple[Module, ...]:
    """Read once: each rule goes through the same trees."""
    found = []
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            found.append(Module(name, path.read_text(encoding="utf-8"), is_package))
    return tuple(found)


def below(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) or below(name, pattern) for pattern in patterns)


def called(call: ast.Call) -> str:
    """The dotted name of what is called, as far as it is written out."""
    parts: list[str] = []
    node: ast.expr = call.func
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return ".".join([node.id if isinstance(node, ast.Name) else "…", *parts])


# --- the rules: each says what is wrong with a module ---

Rule = Callable[[Module], Iterable[str]]


def services_keep_to_themselves(module: Module) -> Iterator[str]:
    """A service never imports another."""
    if not below(module.name, "services"):
        return
    own = ".".join(module.name.split(".")[:2])
    for name in module.imports:
        if below(name, "services") and name != "services" and not below(name, own):
            yield f"imports {name}"


def shared_is_below_all(module: Module) -> Iterator[str]:
    """Only the client, its highest layer, reads the registry."""
    if below(module.name, "shared"):
        above = ("services",) if below(module.name, "shared.client") else ("services", "registry")
        yield from (f"imports {name}" for name in module.imports if any(below(name, each) for each in above))


def layer_of(name: str) -> int | None:
    return next((place for place, layer in enumerate(LAYERS) if below(name, layer)), None)


def shared_is_in_layers(module: Module) -> Iterator[str]:
    """A layer imports only what is below it."""
    if not below(module.name, "shared") or module.name == "shared":
        return
    own = layer_of(module.name)
    if own is None:
        yield "is in no layer"
        return
    for name in module.imports:
        other = layer_of(name)
        if other is None or other <= own or matches(name, ANYBODY_MAY_IMPORT):
            continue
        late = any(module.name == upper and below(name, lower) for upper, lower in LATE_IMPORTS)
        if not late or name in module.imports_at_once:
            yield f"imports {name}"


def registry_is_above_shared_only(module: Module) -> Iterator[str]:
    if below(module.name, "registry"):
        above = ("services", "shared.client", "tests")
        yield from (f"imports {name}" for name in module.imports if any(below(name, each) for each in above))


def only_the_bus_knows_paho(module: Module) -> Iterator[str]:
    if module.name != "shared.messaging.bus":
        yield from (f"imports {name}" for name in module.imports if below(name, "paho"))


def few_start_programs(module: Module) -> Iterator[str]:
    if not matches(module.name, STARTS_PROGRAMS):
        starters = ("subprocess", "_posixsubprocess", "multiprocessing", "asyncio.subprocess", "pty")
        yield from (f"imports {name}" for name in module.imports if any(below(name, each) for each in starters))


def few_become_another_program(module: Module) -> Iterator[str]:
    if not matches(module.name, BECOMES_A_PROGRAM):
        for call in module.calls():
            if called(call).startswith(("os.exec", "os.spawn", "os.posix_spawn", "os.fork")):
                yield f"line {call.lineno}: {called(call)}"


def only_tmux_modules_run_tmux(module: Module) -> Iterator[str]:
    """No argv elsewhere begins with `tmux`."""
    if matches(module.name, ("shared.system.tmux*",)):
        return
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.List | ast.Tuple) or not node.elts:
            continue
        words = [each.value for each in node.elts if isinstance(each, ast.Constant)]
        first = node.elts[0]
        if isinstance(first, ast.Constant) and first.value == "tmux" and is_argv(words[1:]):
            yield f"line {node.lineno}: {words}"


def is_argv(words: Sequence[object]) -> bool:
    """Whether the words behind a program look like its arguments: an option or a tmux command among them."""
    texts = [word for word in words if isinstance(word, str)]
    return any(word.startswith("-") or "-" in word.strip("-") for word in texts)


def no_shell(module: Module) -> Iterator[str]:
    for call in module.calls():
        if any(keyword.arg == "shell" and not is_false(keyword.value) for keyword in call.keywords):
            yield f"line {call.lineno}: shell"
        if called(call) in ("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"):
            yield f"line {call.lineno}: {called(call)}"
        if called(call) in ("eval", "exec"):
            yield f"line {call.lineno}: {called(call)}"
    yield from (f"imports {name}" for name in module.imports if name in ("os.system", "os.popen"))


def is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def decisions_are_pure(module: Module) -> Iterator[str]:
    """The same input, the same answer: no clock, no I/O, no chance, no log."""
    if not module.claims_to_be_pure:
        return
    for name in module.imports:
        if any(below(name, each) for each in IMPURE_IMPORTS):
            yield f"imports {name}"
        if name.rpartition(".")[2] in CLOCKS and below(name, "time"):
            yield f"imports {name}"
    for call in module.calls():
        head, _, last = called(call).rpartition(".")
        if last in CLOCKS and head:
            yield f"line {call.lineno}: {called(call)}"
        if last in FILE_METHODS and (head or last == "open") and last != "replace":
            yield f"line {call.lineno}: {called(call)}"
        if called(call) in ("print", "input", "open"):
            yield f"line {call.lineno}: {called(call)}"


RULES: tuple[Rule, ...] = (
    services_keep_to_themselves,
    shared_is_below_all,
    shared_is_in_layers,
    registry_is_above_shared_only,
    only_the_bus_knows_paho,
    few_start_programs,
    few_become_another_program,
    only_tmux_modules_run_tmux,
    no_shell,
    decisions_are_pure,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.__name__))
def test_every_module_keeps_the_rule(rule: Rule) -> None:
    faults = {module.name: found for module in modules() if (found := sorted(set(rule(module))))}
    assert faults == {}


def test_the_modules_were_found() -> None:
    names = {module.name for module in modules()}
    assert {
        "services.spawner.sessions.decision",
        "services.reconciler.classification",
        "shared.messaging.bus",
        "shared.messaging.journal",
        "registry",
    } <= names
    assert sum(module.claims_to_be_pure for module in modules()) >= 40


SAYS_PURE = '"""What to do. Pure."""\n'

VIOLATIONS: tuple[tuple[Rule, str, str], ...] = (
    (services_keep_to_themselves, "services.spawner.service", "from services.reconciler import decide"),
    (services_keep_to_themselves, "services.spawner.service", "import services.reconciler.classification"),
    (services_keep_to_themselves, "services.spawner.service", "from services import reconciler"),
    (services_keep_to_themselves, "services.spawner.service", "from ..reconciler import decide"),
    (
        services_keep_to_themselves,
        "services.cli.up",
        "def f():\n    from services.spawner.sessions.decision import decide",
    ),
    (shared_is_below_all, "shared.runtime.loop", "from services.spawner import service"),
    (shared_is_below_all, "shared.runtime.loop", "import registry"),
    (shared_is_below_all, "shared.fleet.file", "from registry.records import AgentRecord"),
    (shared_is_below_all, "shared.client.snapshot", "from services.cli import words"),
    (shared_is_in_layers, "shared.contract.topics", "from shared.messaging.bus import Bus"),
    (shared_is_in_layers, "shared.system.tmux.client", "import shared.fleet"),
    (shared_is_in_layers, "shared.messaging.intake", "def f():\n    from shared.runtime.turn import Turn"),
    (shared_is_in_layers, "shared.fleet.check", "from shared.screen import fits_title"),
    (shared_is_in_layers, "shared.somewhere", ""),
    (registry_is_above_shared_only, "registry.file", "from services.cli import words"),
    (registry_is_above_shared_only, "registry.file", "from shared.client.snapshot import Snapshot"),
    (only_the_bus_knows_paho, "shared.runtime.loop", "import paho.mqtt.client as paho"),
    (only_the_bus_knows_paho, "services.cli.events", "from paho.mqtt import client"),
    (few_start_programs, "services.spawner.sessions.launch", "import subprocess"),
    (few_start_programs, "shared.runtime.loop", "from subprocess import run"),
    (few_start_programs, "services.cli.up", "def f():\n    import subprocess"),
    (few_start_programs, "services.cli.testing", "import subprocess"),
    (few_become_another_program, "services.cli.up", "import os\nos.execv('/bin/sh', ['sh'])"),
    (only_tmux_modules_run_tmux, "services.cli.supervision", "run(['tmux', 'kill-server'])"),
    (only_tmux_modules_run_tmux, "services.cli.supervision", "run(('tmux', '-L', name))"),
    (only_tmux_modules_run_tmux, "services.cli.demo", "words = ['tmux', *more, 'new-session']"),
    (no_shell, "services.cli.supervision", "subprocess.run('ls', shell=True)"),
    (no_shell, "services.cli.supervision", "subprocess.run('ls', shell=wanted)"),
    (no_shell, "shared.system.tmux", "import os\nos.system('ls')"),
    (no_shell, "shared.system.tmux", "from os import popen"),
    (no_shell, "shared.system.tmux", "os.popen('ls')"),
    (no_shell, "shared.system.tmux", "eval(text)"),
    (decisions_are_pure, "services.spawner.sessions.decision", SAYS_PURE + "import time\nnow = time.time()"),
    (decisions_are_pure, "services.spawner.sessions.decision", SAYS_PURE + "from time import monotonic"),
    (
        decisions_are_pure,
        "services.spawner.sessions.decision",
        SAYS_PURE + "from datetime import datetime\nnow = datetime.now()",
    ),
    (decisions_are_pure, "services.monitor.decide", SAYS_PURE + "import datetime\ndatetime.datetime.now(tz)"),
    (decisions_are_pure, "services.monitor.verdict", SAYS_PURE + "import time\nnow = time.time()"),
    (decisions_are_pure, "services.monitor.evidence.hooks", SAYS_PURE + "def f(path):\n    path.read_text()"),
    (decisions_are_pure, "services.spawner.sessions.restarts", SAYS_PURE + "import os"),
    (decisions_are_pure, "services.spawner.sessions.restarts", SAYS_PURE + "from os import environ"),
    (decisions_are_pure, "services.spawner.sessions.restarts", SAYS_PURE + "import random"),
    (decisions_are_pure, "services.reconciler.classification", SAYS_PURE + "import subprocess"),
    (decisions_are_pure, "services.reconciler.classification", SAYS_PURE + "import socket"),
    (decisions_are_pure, "services.reconciler.classification", SAYS_PURE + "def f(path):\n    path.write_text('x')"),
    (decisions_are_pure, "services.reconciler.classification", SAYS_PURE + "open('x')"),
    (decisions_are_pure, "services.reconciler.classification", SAYS_PURE + "print('x')"),
    (decisions_are_pure, "services.reconciler.classification", SAYS_PURE + "from shared.system.log import Log"),
    (decisions_are_pure, "services.reconciler.classification", SAYS_PURE + "def f():\n    import logging"),
)


@pytest.mark.parametrize(("rule", "name", "source"), VIOLATIONS, ids=lambda each: getattr(each, "__name__", str(each)))
def test_a_rule_sees_its_violation(rule: Rule, name: str, source: str) -> None:
    assert list(rule(Module(name, source)))


ALLOWED: tuple[tuple[Rule, str, str], ...] = (
    (
        services_keep_to_themselves,
        "services.cli.up",
        "from services.cli import words\nfrom services.cli.up import x",
    ),
    (services_keep_to_themselves, "services.spawner.service", "from .decide import decide\nimport shared.runtime.loop"),
    (services_keep_to_themselves, "shared.runtime.loop", "import services.spawner"),
    (shared_is_below_all, "services.spawner", "import registry"),
    (shared_is_below_all, "shared.client.snapshot", "import registry"),
    (shared_is_below_all, "shared.runtime.loop", "import services_like\nfrom registry_like import x"),
    (registry_is_above_shared_only, "registry.file", "from shared.errors import MusterError\nfrom registry import x"),
    (shared_is_in_layers, "shared.runtime.loop", "from shared.messaging.bus import Bus\nimport shared.runtime.turn"),
    (shared_is_in_layers, "shared.fleet.backend", "from shared.agents.parts import programs_with"),
    (shared_is_in_layers, "shared.fleet.check", "def f():\n    from shared.screen import fits_title"),
    (only_the_bus_knows_paho, "shared.messaging.bus", "import paho.mqtt.client as paho"),
    (few_start_programs, "shared.system.tmux.connection", "import subprocess"),
    (few_start_programs, "services.cli.supervision", "import subprocess"),
    (only_tmux_modules_run_tmux, "shared.system.tmux", "run(['tmux', 'kill-server'])"),
    (only_tmux_modules_run_tmux, "services.cli.doctor", "needed = ('tmux', 'mosquitto')"),
    (no_shell, "services.cli.supervision", "subprocess.run(['ls'], shell=False)"),
    (
        decisions_are_pure,
        "services.spawner.sessions.decision",
        SAYS_PURE + "from dataclasses import replace\nx = replace(known, wish=None)",
    ),
    (decisions_are_pure, "services.spawner.sessions.decision", SAYS_PURE + "from datetime import datetime, timedelta"),
    (decisions_are_pure, "services.spawner.service", "import os, time\ntime.time()"),
)


@pytest.mark.parametrize(("rule", "name", "source"), ALLOWED, ids=lambda each: getattr(each, "__name__", str(each)))
def test_a_rule_leaves_the_rest_alone(rule: Rule, name: str, source: str) -> None:
    assert list(rule(Module(name, source))) == []


# --- any module can be imported first ---


def needed(module: Module, known: Mapping[str, Module]) -> set[str]:
    """The modules that are run while this one is imported; a package's `__init__` comes before what is in it."""
    found = set()
    for name in module.imports_at_once:
        parts = name.split(".")
        for length in range(1, len(parts) + 1):
            above = ".".join(parts[:length])
            if above in known and not below(module.name, above):
                found.add(above)
    return found


def cycles(all_modules: Iterable[Module]) -> list[list[str]]:
    known = {module.name: module for module in all_modules}
    graph = {name: sorted(needed(module, known)) for name, module in known.items()}
    found: list[list[str]] = []
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> None:
        if name in path:
            found.append([*path[path.index(name) :], name])
        elif name not in done:
            for each in graph[name]:
                visit(each, [*path, name])
            done.add(name)

    for name in graph:
        visit(name, [])
    return found


def test_any_module_can_be_imported_first() -> None:
    """A cycle works only as long as everybody enters it at the right place."""
    assert cycles(modules()) == []


@pytest.mark.parametrize(
    ("sources", "loops"),
    [
        ({"a": "import b", "b": "import a"}, True),
        ({"a": "import b", "b": "def f():\n    import a"}, False),
        ({"p": "from p.x import y", "p.x": "from q import z", "q": "from p.w import v", "p.w": ""}, True),
        ({"p": "from p.x import y", "p.x": "import q", "q": ""}, False),
    ],
)
def test_a_cycle_is_seen(sources: dict[str, str], loops: bool) -> None:
    packages = {name.partition(".")[0] for name in sources if "." in name}
    made = [Module(name, source, name in packages) for name, source in sources.items()]
    assert bool(cycles(made)) is loops
