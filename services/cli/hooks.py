"""`muster hooks`: puts hooks into a person's own settings, so that agents that Muster did not start are seen, too."""

import argparse
import difflib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from services.cli.fleet_option import open_fleet_leniently
from services.cli.words import plain
from shared.agents.hooks.formats import FORMATS
from shared.agents.hooks.injection import given
from shared.agents.hooks.installation import (
    SettingsChange,
    carry_out,
    installed_by,
    is_gone,
    planned_install,
    planned_removal,
)
from shared.agents.hooks.spool import Spool
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.fleet.launch_needs import variables_of

GONE = "which is not there (--gone takes them out)"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("install", "remove", "show"), help="put in, take out, or say what is there")
    parser.add_argument("--backend", choices=tuple(FORMATS), action="append", help="only this one; else all you use")
    parser.add_argument("--home", metavar="DIR", type=Path, help="the settings below this directory, not your own")
    parser.add_argument("--gone", action="store_true", help="take out those of fleets that are not there, too")
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and change nothing")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")


def run(options: argparse.Namespace) -> int:
    fleet, fault = open_fleet_leniently(options)
    if fault:
        raise MusterError(fault)
    env = {"HOME": str(options.home.absolute())} if options.home else {"HOME": str(Path.home()), **os.environ}
    names = options.backend or list(FORMATS)
    if options.what == "show":
        return _show(fleet, options.backend or [], env, as_json=options.json)
    if options.what == "install" and not options.backend:
        names = [name for name in names if FORMATS[name].settings(env).parent.is_dir()]
        if not names:
            looked = ", ".join(str(form.settings(env).parent) for form in FORMATS.values())
            raise MusterError(f"none of the agents that have hooks is in use here (no {looked}); name one: --backend")
    planned = planned_install if options.what == "install" else planned_removal
    # Plan all before the first is applied.
    changes = {name: planned(name, fleet.hooks, env, gone=options.gone) for name in names}
    if options.what == "install" and not options.dry_run:
        Spool(fleet.hooks).prepare()
    done = [_apply(name, change, options.what, env, fleet, dry=options.dry_run) for name, change in changes.items()]
    _print(done, changes, as_json=options.json, dry=options.dry_run)
    if options.what == "remove" and not options.backend and not options.dry_run:
        _forget(fleet, as_json=options.json)
    failed = [f"{FORMATS[each['backend']].program}: {each['error']}" for each in done if each["error"]]
    if failed:
        raise MusterError("; ".join(failed))
    return 0


def _apply(
    name: str, change: SettingsChange, what: str, env: Mapping[str, str], fleet: Fleet, *, dry: bool
) -> dict[str, Any]:
    """Make a change, unless it is a dry run, and say what became of it. A failure does not stop the others."""
    try:
        if change.changes and not dry:
            carry_out(change)
    except MusterError as error:
        return {"backend": name, "path": str(change.path), "changed": False, "said": str(error), "error": str(error)}
    outcome = _outcome(name, change, what, dry=dry)
    with suppress(MusterError):  # another program has written it since
        away = [str(each) for each in installed_by(name, env) if each != fleet.hooks and is_gone(each)]
        outcome["said"] += f"; it also has those of {', '.join(away)}, {GONE}" if away else ""
    return outcome


def _print(done: list[dict[str, Any]], changes: Mapping[str, SettingsChange], *, as_json: bool, dry: bool) -> None:
    """Print what was done. Failures are raised later, as one error."""
    if as_json:
        print(json.dumps(done, ensure_ascii=False))
        return
    for outcome in done:
        if outcome["error"] is None:
            print(plain(outcome["said"]))
        for line in _difference(changes[outcome["backend"]]) if dry else ():
            print(plain(line))


def _forget(fleet: Fleet, *, as_json: bool) -> None:
    """Remove unread calls of installed hooks: they hold what people's agents saw and wrote."""
    number = Spool(fleet.hooks).remove_foreign()
    if number and not as_json:
        calls = "1 call" if number == 1 else f"{number} calls"
        print(f"{calls} of agents that you started {'was' if number == 1 else 'were'} removed unread")


def _outcome(name: str, change: SettingsChange, what: str, *, dry: bool) -> dict[str, Any]:
    form = FORMATS[name]
    if not change.changes:
        said = "has the hooks already" if what == "install" else "has no hooks of this fleet"
        said = f"{form.program}: {change.path} {said}"
    else:
        would = "would be" if dry else "were"
        did = f"{would} put into" if what == "install" else f"{would} taken out of"
        said = f"{form.program}: the hooks {did} {change.path}"
        said += f"; {form.then}" if form.then and what == "install" and not dry else ""
        said += "; agents that run already do not know it" if not dry else ""
    changed = change.changes and not dry
    return {"backend": name, "path": str(change.path), "changed": changed, "said": said, "error": None}


def _difference(change: SettingsChange) -> Iterator[str]:
    """Only the lines that differ: a person's settings may hold secrets."""
    before, after = ((text or "").splitlines() for text in (change.before, change.after))
    lines = difflib.unified_diff(before, after, n=0, lineterm="")
    return (f"  {line}" for line in lines if not line.startswith(("---", "+++", "@@")))


# --- show ---


def _show(fleet: Fleet, asked: list[str], env: Mapping[str, str], *, as_json: bool) -> int:
    names = asked or list(FORMATS)
    settings = [_settings(name, fleet.hooks, env) for name in names]
    agents = [_agent(fleet, agent) for agent in fleet.declared.agents]
    agents = [each for each in agents if each["kind"] in names or not asked]
    if as_json:
        print(json.dumps({"settings": settings, "agents": agents}, ensure_ascii=False))
        return 0
    for each in (*settings, *agents):
        print(plain(each["said"]))
    return 0


def _settings(name: str, directory: Path, env: Mapping[str, str]) -> dict[str, Any]:
    form = FORMATS[name]
    path = form.settings(env)
    document = {"backend": name, "path": str(path), "installed": False, "current": False, "others": []}
    try:
        found = installed_by(name, env)
        current = not planned_install(name, directory, env).changes
    except MusterError as error:
        return {**document, "said": f"{form.program}: {error}"}
    others = sorted(str(each) for each in found if each != directory)
    said = "no hooks of this fleet"
    if directory in found:
        said = "has the hooks" if current else "has hooks that are out of date; muster hooks install renews them"
    shown = [f"{each}, {GONE}" if is_gone(Path(each)) else each for each in others]
    said += f"; also those of {'; '.join(shown)}" if others else ""
    about = {"installed": directory in found, "current": current, "others": others}
    return {**document, **about, "said": f"{form.program}: {path}: {said}"}


def _agent(fleet: Fleet, agent: str) -> dict[str, Any]:
    """What the agent would be given if it were started now."""
    backend = fleet.profile(agent)
    hooks = backend.hooks
    if hooks is None:
        said = f"{agent}: is started without hooks: its backend {fleet.agents[agent].backend!r} has none"
        return {"agent": agent, "kind": None, "given": False, "said": said}
    try:
        words = [*backend.argv, *backend.extra_args]
        withheld = given(hooks, fleet.hooks, words, variables_of(fleet, agent, backend, os.environ)).withheld
    except MusterError as error:
        withheld = str(error)
    said = f"is started without hooks: {withheld}" if withheld else "is started with hooks"
    return {"agent": agent, "kind": hooks.kind, "given": not withheld, "said": f"{agent}: {said}"}
