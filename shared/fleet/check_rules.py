"""What is wrong with the rules for screens and titles that a person wrote: each is held to the samples beside it.

The shipped ones are held to theirs by tests, not whenever a file is read.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from shared.fleet.backend import Backend
from shared.fleet.faults import allowed
from shared.fleet.signs import Sign, TitleRule

Found = Iterator[tuple[tuple[Any, ...], str]]
"""Where, and what is wrong there."""
Rule = Sign | TitleRule


def check_rules(declared: Backend, whole: Backend, base: Backend) -> Found:
    """`declared` as it was written, `whole` with what it was laid over: `base`."""
    for name, sign in declared.screen.signs.items():
        found = _rule(name, sign, whole.screen.signs.get(name), base.screen.signs, whole)
        yield from ((("screen", "signs", name, *place), said) for place, said in found)
    for name, title in declared.titles.items():
        found = _rule(name, title, whole.titles.get(name), base.titles, whole)
        yield from ((("titles", name, *place), said) for place, said in found)


def _rule(
    name: str, written: Rule | None, rule: Rule | None, below: Mapping[str, Rule | None], backend: Backend
) -> Found:
    if written is None:
        if name not in below:
            yield (), f"it is empty, which takes a rule away, but there is none; {allowed(name, sorted(below))}"
        return
    if rule is None or rule.says is None or not rule.match:
        yield (), "a rule needs `says` and `match`"
        return
    yield from _reason(rule)
    for key, samples, expected in (("yes", written.yes, True), ("no", written.no, False)):
        for place, sample in enumerate(samples):
            if _fits(rule, sample, backend) is not expected:
                said = "does not match this sample" if expected else "matches this sample, which it must not"
                yield (key, place), f"the rule {said}"


def _reason(rule: Rule) -> Found:
    if isinstance(rule, Sign):
        groups = sorted(re.compile(rule.match).groupindex)
        for name in re.findall(r"\{(\w+)\}", rule.reason):
            if name not in groups:
                yield ("reason",), f"{{{name}}} is no group of `match`; {allowed(name, groups)}"


def _fits(rule: Rule, sample: str, backend: Backend) -> bool:
    from shared.screen import fits_title, shows_sign  # noqa: PLC0415 - it needs the models of this package

    return shows_sign(backend.screen, rule, sample) if isinstance(rule, Sign) else fits_title(rule, sample)
