"""One name, one thing: classes, modules and where their tests lie. Each rule is shown to be able to fail."""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from pathlib import Path, PurePosixPath

import pytest

from tests.unit.test_layers import Module, modules

ENDINGS = ("ations", "ation", "ions", "ion", "ings", "ing", "ers", "er", "ed", "s", "e")
PERSONS = {
    *("carer", "typist", "postman", "ears", "eyes", "hands", "mouth", "desk", "clerk", "nurse", "butler", "teller"),
    *("listener", "looker", "helper", "stranger", "strangers", "manager", "master", "guard", "scribe"),
}
SAYS_NOTHING = {"utils", "util", "common", "helpers", "misc", "stuff", "base", "core", "lib", "impl"}
NO_NOUNS = {
    *("presses", "care", "course", "errands", "post", "sights", "sight", "told", "seen", "held", "kept", "insides"),
    *("rhythm", "calm", "scene", "look_at", "carry_out", "take_up", "decide", "begin", "tell", "hear", "ask_for"),
}
NOUNS_IN_ING = {"typing", "parking", "reporting", "messaging"}
"""What ends in -ing and is the field's own word for a thing."""


# --- the rules: each says what is wrong with a set of modules ---

Rule = Callable[[Iterable[Module]], Iterable[str]]


def a_public_class_name_exists_once(all_modules: Iterable[Module]) -> Iterator[str]:
    places: dict[str, list[str]] = defaultdict(list)
    for module in all_modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module.name)
    yield from (f"{name}: {', '.join(found)}" for name, found in places.items() if len(found) > 1)


def no_two_modules_differ_by_grammar(all_modules: Iterable[Module]) -> Iterator[str]:
    """Inside one package tree: a service, or a layer of `shared`. A package may be the plural of what is in it."""
    trees: dict[str, set[str]] = defaultdict(set)
    for module in all_modules:
        parts = module.name.split(".")
        if len(parts) > 2 and not module.is_package:
            trees[".".join(parts[:2])].add(parts[-1])
    for tree, names in trees.items():
        for one, other in combinations(sorted(names), 2):
            if stem(one) == stem(other):
                yield f"{tree}: {one}, {other}"


def stem(name: str) -> str:
    """A name without what grammar adds to it: `hold` for holds, holding and holder."""
    if name.endswith("ies"):
        name = f"{name[:-3]}y"
    for ending in ENDINGS:
        if name.endswith(ending) and len(name) - len(ending) >= 3:
            return stem(name.removesuffix(ending))
    return name


def no_module_is_a_person(all_modules: Iterable[Module]) -> Iterator[str]:
    yield from (module.name for module in all_modules if PERSONS & words_of(module))


def modules_are_nouns(all_modules: Iterable[Module]) -> Iterator[str]:
    for module in all_modules:
        last = module.name.rpartition(".")[2]
        bare = last.split("_")[-1]
        if last in NO_NOUNS | SAYS_NOTHING or (bare.endswith("ing") and bare not in NOUNS_IN_ING):
            yield module.name


def words_of(module: Module) -> set[str]:
    return set(module.name.rpartition(".")[2].split("_"))


RULES: tuple[Rule, ...] = (
    a_public_class_name_exists_once,
    no_two_modules_differ_by_grammar,
    no_module_is_a_person,
    modules_are_nouns,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.__name__))
def test_the_product_keeps_the_rule(rule: Rule) -> None:
    assert sorted(rule(modules())) == []


VIOLATIONS: tuple[tuple[Rule, dict[str, str]], ...] = (
    (a_public_class_name_exists_once, {"shared.a": "class Sight: pass", "services.x.b": "class Sight: pass"}),
    (no_two_modules_differ_by_grammar, {"services.x.hold": "", "services.x.y.holds": ""}),
    (no_two_modules_differ_by_grammar, {"services.x.press": "", "services.x.pressing": ""}),
    (no_two_modules_differ_by_grammar, {"services.x.watch": "", "services.x.watcher": ""}),
    (no_two_modules_differ_by_grammar, {"services.x.adopted": "", "services.x.adoption": ""}),
    (no_two_modules_differ_by_grammar, {"services.x.policy": "", "services.x.y.policies": ""}),
    (no_two_modules_differ_by_grammar, {"shared.fleet.rule": "", "shared.fleet.rules": ""}),
    (no_module_is_a_person, {"services.spawner.typist": ""}),
    (no_module_is_a_person, {"services.handoff.loops.postman": ""}),
    (no_module_is_a_person, {"services.monitor.hook_ears": ""}),
    (modules_are_nouns, {"services.monitor.told": ""}),
    (modules_are_nouns, {"services.spawner.carrying": ""}),
    (modules_are_nouns, {"services.spawner.text_pressing": ""}),
    (modules_are_nouns, {"shared.utils": ""}),
)
ALLOWED: tuple[tuple[Rule, dict[str, str]], ...] = (
    (a_public_class_name_exists_once, {"shared.a": "class _Own: pass", "services.x.b": "class _Own: pass"}),
    (no_two_modules_differ_by_grammar, {"services.x.hold": "", "services.y.holds": ""}),
    (no_two_modules_differ_by_grammar, {"services.x.hold": "", "services.x.y.hold": ""}),
    (no_two_modules_differ_by_grammar, {"services.x.queue": "", "services.x.query": ""}),
    (no_module_is_a_person, {"services.monitor.hook_intake": ""}),
    (modules_are_nouns, {"services.spawner.typing": "", "services.spawner.sessions.parking": ""}),
)


def made(sources: dict[str, str]) -> list[Module]:
    return [Module(name, source) for name, source in sources.items()]


def shown(given: Rule | dict[str, str]) -> str:
    return " and ".join(given) if isinstance(given, dict) else str(getattr(given, "__name__", given))


@pytest.mark.parametrize(("rule", "sources"), VIOLATIONS, ids=shown)
def test_a_rule_sees_its_violation(rule: Rule, sources: dict[str, str]) -> None:
    assert list(rule(made(sources)))


@pytest.mark.parametrize(("rule", "sources"), ALLOWED, ids=shown)
def test_a_rule_leaves_the_rest_alone(rule: Rule, sources: dict[str, str]) -> None:
    assert list(rule(made(sources))) == []


# --- where tests lie ---

UNIT = Path(__file__).parent
OF_NO_MODULE = ("chaos", "fakes")
"""Folders of unit tests that stand beside the product."""


def misplaced(test: PurePosixPath, names: set[str]) -> str:
    """What is wrong with the place of a unit test, by its path in tests/unit; nothing when it mirrors a module.

    The tests of `services/x/y.py` are `x/test_y.py`, and as many `x/test_y_….py` as it takes.
    """
    *folders, file = test.parts
    if not folders or folders[0] in OF_NO_MODULE:
        return ""
    package = ".".join(folders if folders[0] in ("shared", "registry") else ["services", *folders])
    here = {name.removeprefix(f"{package}.").strip("_") for name in names if name.rpartition(".")[0] == package}
    tested = file.removeprefix("test_").removesuffix(".py")
    mirrored = any(tested == module or tested.startswith(f"{module}_") for module in here)
    return "" if mirrored else f"{test}: {package} has no such module"


def test_unit_tests_lie_where_their_modules_lie() -> None:
    names = {module.name for module in modules()}
    tests = [PurePosixPath(path.relative_to(UNIT).as_posix()) for path in UNIT.rglob("test_*.py")]
    assert len(tests) > 100
    assert sorted(filter(None, (misplaced(test, names) for test in tests))) == []


@pytest.mark.parametrize(
    ("test", "fine"),
    [
        ("monitor/limits/test_hold.py", True),
        ("monitor/limits/test_hold_properties.py", True),
        ("cli/test_main.py", True),
        ("shared/fleet/test_file.py", True),
        ("test_layers.py", True),
        ("monitor/test_hold.py", False),
        ("monitor/limits/test_holding.py", False),
        ("shared/test_file.py", False),
        ("care/test_hold.py", False),
    ],
)
def test_a_test_in_another_place_is_seen(test: str, fine: bool) -> None:
    names = {"services.monitor.limits.hold", "services.cli.__main__", "shared.fleet.file"}
    assert (misplaced(PurePosixPath(test), names) == "") is fine
