"""Every test can fail by what it finds, and none looks into what is private. Each rule is shown to be able to fail."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("services", "shared", "registry")
ASSERTS = re.compile(r"assert|expect|wait|until|eventually|(raises|warns|fail)$")
"""Calls that fail by themselves when something is not so: `pytest.raises`, `wait_until`, `eventually` …"""

NOT_YET: tuple[str, ...] = (
    "tests/fixtures/dying_spawner.py",  # dies between any two words to tmux, which no public name stands for
    "tests/integration/test_registry_killed.py",  # the same with the steps of a write
)
"""Where private names may still be used."""


@dataclass(frozen=True)
class TestFile:
    __test__ = False
    name: str
    source: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)

    @cached_property
    def functions(self) -> dict[str, list[ast.FunctionDef]]:
        """Functions and methods by their names."""
        found: dict[str, list[ast.FunctionDef]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef):
                found.setdefault(node.name, []).append(node)
        return found

    @cached_property
    def imports(self) -> dict[str, str]:
        """What is imported from where, by the name that it has here."""
        nodes = [node for node in ast.walk(self.tree) if isinstance(node, ast.ImportFrom)]
        return {alias.asname or alias.name: node.module or "" for node in nodes for alias in node.names}


@cache
def files_of_tests() -> Mapping[str, TestFile]:
    found = {}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = TestFile(name, path.read_text(encoding="utf-8"))
    return found


# --- what asserts ---


def calls(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """The names of what is called, and whether each is a method."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name):
            yield each.func.id, False
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            yield each.func.attr, True


def fails_itself(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Assert) for each in ast.walk(node)) or any(
        ASSERTS.match(name) for name, _ in calls(node)
    )


class Assertions:
    """Which functions of the tests fail by themselves, or call one that does."""

    def __init__(self, files: Mapping[str, TestFile]) -> None:
        self._files = files
        self._known: dict[tuple[str, str], bool] = {}

    def of(self, file: TestFile, node: ast.FunctionDef) -> bool:
        return fails_itself(node) or any(
            self._is_helper(where, name)
            for name, method in set(calls(node))
            for where in self._where(file, name, method)
        )

    def _where(self, file: TestFile, name: str, method: bool) -> Iterator[TestFile]:
        """Where a helper of this name may be: here, or in a test module that is imported here."""
        if name in file.functions:
            yield file
        elif method:
            yield from (self._files[each] for each in {*file.imports.values()} if each in self._files)
        elif file.imports.get(name) in self._files:
            yield self._files[file.imports[name]]

    def _is_helper(self, file: TestFile, name: str) -> bool:
        key = (file.name, name)
        if key not in self._known:
            self._known[key] = False  # as long as it is asked: one that only calls itself asserts nothing
            self._known[key] = any(self.of(file, node) for node in file.functions.get(name, ()))
        return self._known[key]


def without_assertion(file: TestFile, assertions: Assertions) -> list[str]:
    tests = [node for name, nodes in file.functions.items() if name.startswith("test_") for node in nodes]
    return [node.name for node in tests if not assertions.of(file, node)]


# --- what is private ---


def private_uses(file: TestFile) -> Iterator[str]:
    """Names of the product that begin with `_`: imported, patched by name, or reached through a module or an object."""
    product = {name for name, module in file.imports.items() if is_product(module)}
    for node in ast.walk(file.tree):
        if isinstance(node, ast.ImportFrom) and is_product(node.module or ""):
            yield from (alias.name for alias in node.names if is_private(alias.name))
        elif isinstance(node, ast.Attribute) and is_private(node.attr) and not is_own(node.value):
            yield f"{ast.unparse(node)} in line {node.lineno}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            yield from patched(node, product)


def patched(call: ast.Call, product: Iterable[str]) -> Iterator[str]:
    words = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    owner = call.args[0]
    foreign = isinstance(owner, ast.Name) and not owner.id.islower() and owner.id not in product
    for word in words[:1]:
        if is_private(word.rpartition(".")[2]) and not foreign:
            yield f"{word} in line {call.lineno}"


def is_product(module: str) -> bool:
    return module.split(".", maxsplit=1)[0] in PRODUCT


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def is_own(node: ast.expr) -> bool:
    """`self._x`, and what a class says of itself."""
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


# --- the rules, on the tests as they are ---


def test_the_tests_were_found() -> None:
    assert len(files_of_tests()) > 200
    assert "test_every_test_asserts" in files_of_tests()["tests.unit.test_assertions"].functions


def test_every_test_asserts() -> None:
    assertions = Assertions(files_of_tests())
    faults = {name: found for name, file in files_of_tests().items() if (found := without_assertion(file, assertions))}
    assert faults == {}


def test_no_test_uses_what_is_private() -> None:
    faults = {
        name: found
        for name, file in files_of_tests().items()
        if not f"{name.replace('.', '/')}.py".startswith(NOT_YET) and (found := sorted(set(private_uses(file))))
    }
    assert faults == {}


# --- and on tests that are made for them ---

HELPERS = TestFile(
    "tests.helpers",
    "def check(x):\n    assert x\ndef twice(x):\n    check(x)\ndef quiet(x):\n    pass\n"
    "class Rig:\n    def settle(self):\n        assert self\n    def poke(self):\n        pass\n",
)


@pytest.mark.parametrize(
    ("body", "fine"),
    [
        ("assert x", True),
        ("with pytest.raises(ValueError):\n        f()", True),
        ("pytest.fail('x')", True),
        ("wait_until(f, 'x')", True),
        ("fleet.wait_for('x')", True),
        ("check(1)", True),
        ("twice(1)", True),
        ("def inner():\n        assert x\n    inner()", True),
        ("rig.settle()", True),
        ("own(1)", True),
        ("f(1)", False),
        ("quiet(1)", False),
        ("rig.poke()", False),
        ("recurses(1)", False),
        ("other.check(1)", True),
        ("", False),
    ],
)
def test_what_asserts_is_told_from_what_does_not(body: str, fine: bool) -> None:
    source = (
        "from tests.helpers import check, quiet, twice\n"
        "def own(x):\n    assert x\ndef recurses(x):\n    recurses(x)\n"
        f"def test_it(rig):\n    {body or 'pass'}\n"
    )
    file = TestFile("tests.it", source)
    assert without_assertion(file, Assertions({file.name: file, HELPERS.name: HELPERS})) == (
        [] if fine else ["test_it"]
    )


PRIVATE: Sequence[str] = (
    "from shared.fleet.file import _read",
    "from services.cli import logs\nlogs._find()",
    "service._records.read()",
    "world.service._records = None",
    "from shared.agents.gemini import hooks\nmonkeypatch.setattr(hooks, '_is_roots_alone', f)",
    "from shared.fleet import Fleet\nmonkeypatch.setattr(Fleet, '_read', f)",
    "monkeypatch.setattr('shared.fleet.file._read', f)",
    "monkeypatch.setattr(server.tmux, '_read', f)",
)
PUBLIC: Sequence[str] = (
    "from shared.fleet.file import read",
    "from services.cli.__main__ import main",
    "self._x = 1",
    "path.__class__",
    "from tests.fixtures.broker import _x",
    "monkeypatch.setattr('shared.fleet.file.read', f)",
    "_x = 1\nprint(_x)",
)


@pytest.mark.parametrize("source", PRIVATE)
def test_what_is_private_is_seen(source: str) -> None:
    assert list(private_uses(TestFile("tests.it", source)))


@pytest.mark.parametrize("source", PUBLIC)
def test_what_is_public_is_left_alone(source: str) -> None:
    assert list(private_uses(TestFile("tests.it", source))) == []
