"""What is wrong with the rules for screens and titles that a person wrote: each is held to the samples beside it.

The shipped ones are held to theirs by tests, not whenever a file is read.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from shared.fleet.backend import Backend
from shared.fleet.faults import allowed
from shared.fleet.signs import Dialog, LimitWarning, Sign, TitleRule

Found = Iterator[tuple[tuple[Any, ...], str]]
"""Where, and what is wrong there."""
Named = Sign | TitleRule | LimitWarning
Rule = Named | Dialog


def check_rules(declared: Backend, whole: Backend, base: Backend) -> Found:
    """`declared` as it was written, `whole` with what it was laid over: `base`."""
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
    """Those that were written beside a rule; `rule` is what came of it."""
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
    from shared.screen import fits_title, shows_dialog, shows_sign  # noqa: PLC0415 - it needs the models of this package

    match rule:
        case Sign() | LimitWarning():
            return shows_sign(backend.screen, rule, sample)
        case Dialog():
            return shows_dialog(backend.screen, rule, sample)
        case TitleRule():
            return fits_title(rule, sample)
