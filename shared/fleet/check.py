"""Checks of a fleet file that need more than one key: unknown names, directories that are not allowed, and rules for
screens and titles that fail on their own samples.

The shipped rules are checked on their samples by tests, the user's own when the file is read.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from shared.fleet.backend import Backend
from shared.fleet.declaration import AgentKind
from shared.fleet.faults import Faults, allowed, bad, shown
from shared.fleet.fleet import SIDE_SERVICE, BadPath, Fleet
from shared.fleet.loops import OF_COMMIT, OF_INBOX, OF_PHASE, Loop
from shared.fleet.profiles import shipped
from shared.fleet.screen_rules import Dialog, LimitWarning, Sign, TitleRule
from shared.system.tmux.requests import KEEPER

Found = Iterator[tuple[tuple[Any, ...], str]]
"""The keys that lead to a fault, and its description."""

LISTS = ("resume_args", "extra_args", "hooks_args", "fresh_args", "model_args", "prompt_args")
"""The placeholders in `argv` that stand for a list of words."""
ASK_LISTS = ("model_args", "schema_args")
"""The same in `ask.argv`."""


def check(fleet: Fleet, faults: Faults) -> None:
    """Raise BadFleetFile with all faults."""
    rules = (_backends, _agents, _names, _paths, _workspaces, _loops)
    if found := [faults.sentence(where, said) for rule in rules for where, said in rule(fleet)]:
        raise bad(found)


def _backends(fleet: Fleet) -> Found:
    declared = fleet.declared.backends
    known = sorted({*declared, *shipped()})
    for name, backend in declared.items():
        where = ("backends", name)
        if name == SIDE_SERVICE:
            yield where, f"{SIDE_SERVICE!r} stands for side services; choose another name"
        if backend.like is not None and backend.like not in known:
            others = [each for each in known if each != name]
            yield (*where, "like"), f"there is no backend {backend.like!r}; {allowed(backend.like, others)}"
        elif _leads_back(name, declared):
            yield (*where, "like"), "it leads back to itself"
        if name in fleet.backends:
            yield from (((*where, *place), said) for place, said in _backend(fleet.backends[name]))
            base = shipped().get(name) if backend.like is None else fleet.backends.get(backend.like)
            found = check_rules(backend, fleet.backends[name], base or Backend())
            yield from (((*where, *place), said) for place, said in found)


def _leads_back(name: str, declared: Mapping[str, Backend]) -> bool:
    passed: list[str] = []
    at = declared[name].like
    while at is not None and at in declared and at not in passed:
        passed.append(at)
        at = declared[at].like
    return name in passed


def _backend(backend: Backend) -> Found:
    if not backend.binary and any("{binary}" in word for word in backend.argv):
        yield (), "it has no `binary`: name the program to run, or another backend to be `like`"
    if backend.hooks is not None and not backend.hooks.kind:
        yield ("hooks",), "they need `kind`: claude, codex or gemini"
    if backend.ask is not None and not backend.ask.kind:
        yield ("ask",), "it needs `kind`: claude, codex, opencode, gemini or demo"
    if backend.ask is not None and not backend.ask.argv:
        yield ("ask",), "it needs `argv`: the command line that asks"
    yield from ((("argv", *place), said) for place, said in _lists_inside(backend.argv, LISTS))
    if backend.ask is not None:
        yield from ((("ask", "argv", *place), said) for place, said in _lists_inside(backend.ask.argv, ASK_LISTS))
    if backend.screen.box is not None and "text" not in re.compile(backend.screen.box).groupindex:
        yield ("screen", "box"), "it must have the group (?P<text>…) around what is typed in the box"


def _lists_inside(argv: Sequence[str], lists: Iterable[str]) -> Found:
    for place, word in enumerate(argv):
        inside = [name for name in lists if f"{{{name}}}" in word and word != f"{{{name}}}"]
        yield from (((place,), f"{{{name}}} stands for a list: make it a word of its own") for name in inside)


def _agents(fleet: Fleet) -> Found:
    known = sorted({*fleet.backends, *fleet.declared.backends})
    for section, agents in (("defaults", {"": fleet.declared.defaults}), ("agents", fleet.declared.agents)):
        for name, agent in agents.items():
            where = (section, name) if name else (section,)
            if agent.backend not in known:
                yield (*where, "backend"), f"there is no backend {agent.backend!r}; {allowed(agent.backend, known)}"
            if agent.kind is AgentKind.SERVICE:
                yield (*where, "kind"), "commands that are no agents are declared under `services`"


def _names(fleet: Fleet) -> Found:
    for name in fleet.declared.services:
        if name in fleet.declared.agents:
            yield ("services", name), f"an agent is named {name!r} too; choose another name"
    for section, members in (("agents", fleet.declared.agents), ("services", fleet.declared.services)):
        if KEEPER in members:
            yield (section, KEEPER), "this name is Muster's own; choose another"


def _paths(fleet: Fleet) -> Found:
    """Whether paths can be resolved; whether the files exist is checked when they are needed."""
    declared = fleet.declared
    named: list[tuple[tuple[Any, ...], Path | None]] = [
        *((("workspaces", place), root) for place, root in enumerate(declared.workspaces)),
        *((("defaults", key), getattr(declared.defaults, key)) for key in ("prompt_file", "env_file")),
    ]
    for name, agent in declared.agents.items():
        named += [(("agents", name, "prompt_file"), agent.prompt_file), (("agents", name, "env_file"), agent.env_file)]
    for name, service in declared.services.items():
        named.append((("services", name, "env_file"), service.env_file))
    for name, loop in declared.loops.items():
        named.append((("loops", name, "kickoff"), loop.kickoff))
        named += [(("loops", name, "role_prompts", role), path) for role, path in loop.role_prompts.items()]
        named += [
            (("loops", name, "phases", place, "kickoff"), phase.kickoff) for place, phase in enumerate(loop.phases)
        ]
    for where, path in named:
        try:
            fleet.resolve(path or Path())
        except BadPath as fault:
            yield where, str(fault)


def _workspaces(fleet: Fleet) -> Found:
    if len(fleet.roots) < len(fleet.declared.workspaces):
        return  # `_paths` has reported the bad one
    for name, agent in fleet.agents.items():
        section = "services" if name in fleet.declared.services else "agents"
        if (said := outside(fleet, agent.dir)) is not None:
            yield (section, name, "dir"), said


def outside(fleet: Fleet, directory: Path) -> str | None:
    """Why an agent can't run in a directory; None if it can."""
    try:
        workspace = fleet.resolve(directory)
    except BadPath as fault:
        return str(fault)
    if fleet.allows(workspace):
        return None
    roots = ", ".join(map(str, fleet.roots)) or "none"
    return f"{workspace} is outside the allowed workspaces ({roots}); move it, or add a directory to `workspaces`"


def _loops(fleet: Fleet) -> Found:
    playing: dict[str, str] = {}
    for name, loop in fleet.declared.loops.items():
        for role, agent in loop.roles.items() if loop.phases else ():
            other = playing.setdefault(agent, name)
            if other != name and agent in fleet.phased:
                said = f"{agent!r} plays in the phases of the loop {other!r} too: each would start it anew"
                yield ("loops", name, "roles", role), f"{said}; give one of them another agent"
        yield from ((("loops", name, *place), said) for place, said in _loop(fleet, loop))


def _loop(fleet: Fleet, loop: Loop) -> Found:
    agents, roles = sorted(fleet.declared.agents), sorted(loop.roles)
    for role, agent in loop.roles.items():
        if agent not in agents:
            yield ("roles", role), f"there is no agent {agent!r}; {allowed(agent, agents)}"
    targets: list[tuple[tuple[Any, ...], str]] = [
        *((("patterns", name, "to"), to) for name, pattern in loop.patterns.items() for to in pattern.to),
        *((("inbox", path), to) for path, inbox in loop.inbox.items() for to in inbox.to),
    ]
    for path in loop.inbox:
        if "[" in path:
            yield (
                ("inbox", path),
                "only `*` (any part of a name), `?` (a letter) and `**/` (directories) stand for others",
            )
    for where, to in targets:
        if to not in {*roles, *agents}:
            yield where, f"no role of this loop and no agent; {allowed(to, [*roles, *agents])}"
    yield from _phases(fleet, loop, roles)
    yield from _templates(loop)
    tasks = [agent for agent in agents if fleet.agents[agent].kind is AgentKind.TASK]
    if loop.on_complete is not None and loop.on_complete not in tasks:
        yield ("on_complete",), f"it must be an agent of kind task; {allowed(loop.on_complete, tasks)}"


def _phases(fleet: Fleet, loop: Loop, roles: Sequence[str]) -> Found:
    names = [phase.name for phase in loop.phases]
    for place, phase in enumerate(loop.phases):
        if phase.name in names[:place]:
            yield ("phases", place, "name"), "another phase above is called so too; choose another name"
        for role in phase.models:
            where = ("phases", place, "models", role)
            if role not in roles:
                yield where, f"no role of this loop; {allowed(role, roles)}"
            elif (agent := fleet.agents.get(loop.roles[role])) is not None and agent.kind is not AgentKind.LOOP:
                yield where, "only an agent of kind loop is started anew for a phase, and so on another model"
    for role in loop.role_prompts:
        if role not in roles:
            yield ("role_prompts", role), f"no role of this loop; {allowed(role, roles)}"


def _templates(loop: Loop) -> Found:
    """Unknown placeholders in messages."""
    written: list[tuple[tuple[Any, ...], str, frozenset[str]]] = [
        *((("patterns", name, "text"), pattern.text, OF_COMMIT) for name, pattern in loop.patterns.items()),
        *((("inbox", path, "text"), inbox.text, OF_INBOX) for path, inbox in loop.inbox.items()),
        (("status_file",), loop.status_file or "", OF_PHASE),
    ]
    for where, text, known in written:
        for name in re.findall(r"\{(\w+)\}", text):
            if name not in known:
                yield where, f"{{{shown(name)}}} is nothing that can be filled in; {allowed(name, sorted(known))}"
    for name in re.findall(r"\{([a-z_]\w*)\}", loop.done):
        if name not in OF_PHASE:
            yield ("done",), f"{{{shown(name)}}} is nothing that can be filled in; {allowed(name, sorted(OF_PHASE))}"


Named = Sign | TitleRule | LimitWarning
Rule = Named | Dialog


def check_rules(declared: Backend, whole: Backend, base: Backend) -> Found:
    """Faults of the rules in `declared`; `whole` is `declared` on top of `base`."""
    for name, sign in declared.screen.signs.items():
        found = _rule(name, sign, whole.screen.signs.get(name), base.screen.signs, whole)
        yield from ((("screen", "signs", name, *place), said) for place, said in found)
    for name, warning in declared.screen.warnings.items():
        found = _rule(name, warning, whole.screen.warnings.get(name), base.screen.warnings, whole)
        yield from ((("screen", "warnings", name, *place), said) for place, said in found)
    for name, title in declared.titles.items():
        found = _rule(name, title, whole.titles.get(name), base.titles, whole)
        yield from ((("titles", name, *place), said) for place, said in found)
    for at, dialog in enumerate(declared.screen.dialogs):
        found = _dialog(dialog, [each.id for each in declared.screen.dialogs[:at]], whole, base)
        yield from ((("screen", "dialogs", at, *place), said) for place, said in found)


def _rule(
    name: str,
    written: Named | None,
    rule: Named | None,
    below: Mapping[str, Named | None],
    backend: Backend,
) -> Found:
    if written is None:
        if name not in below:
            yield (), f"it is empty, which takes a rule away, but there is none; {allowed(name, sorted(below))}"
        return
    if isinstance(rule, LimitWarning):
        if not rule.match:
            yield (), "a warning needs `match`"
            return
    elif rule is None or rule.says is None or not rule.match:
        yield (), "a rule needs `says` and `match`"
        return
    yield from _reason(rule)
    yield from _samples(written, rule, backend)


def _dialog(written: Dialog, earlier: list[str], whole: Backend, base: Backend) -> Found:
    known = sorted(each.id for each in base.screen.dialogs)
    if written.id in earlier:
        yield ("id",), f"there is another dialog {written.id!r} above; choose another name"
        return
    if written.match is None:
        if written.id not in known:
            said = "it is empty, which takes a dialog away, but there is none"
            yield ("match",), f"{said} {written.id!r}; {allowed(written.id, known)}"
        return
    dialog = next(each for each in whole.screen.dialogs if each.id == written.id)
    if not dialog.match or not dialog.says:
        yield (), "a dialog needs `match` and `says`"
        return
    yield from _samples(written, dialog, whole)


def _samples(written: Rule, rule: Rule, backend: Backend) -> Found:
    """The samples of a rule as written; `rule` is the merged rule that they are tried on."""
    for key, samples, expected in (("yes", written.yes, True), ("no", written.no, False)):
        for place, sample in enumerate(samples):
            if _fits(rule, sample, backend) is not expected:
                said = "does not match this sample" if expected else "matches this sample, which it must not"
                yield (key, place), f"the rule {said}"


def _reason(rule: Named) -> Found:
    if isinstance(rule, Sign):
        groups = sorted(re.compile(rule.match).groupindex)
        for name in re.findall(r"\{(\w+)\}", rule.reason):
            if name not in groups:
                yield ("reason",), f"{{{name}}} is no group of `match`; {allowed(name, groups)}"


def _fits(rule: Rule, sample: str, backend: Backend) -> bool:
    from shared.screen import fits_title, shows_dialog, shows_sign  # noqa: PLC0415 - that package imports the models of this one

    match rule:
        case Sign() | LimitWarning():
            return shows_sign(backend.screen, rule, sample)
        case Dialog():
            return shows_dialog(backend.screen, rule, sample)
        case TitleRule():
            return fits_title(rule, sample)
