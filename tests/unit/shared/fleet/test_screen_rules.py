"""Rules for screens and titles in the fleet file: laid over the shipped ones, and held to the samples beside them."""

from pathlib import Path

import pytest

from shared.contract.states import Activity
from shared.fleet import BadFleetFile, load_fleet
from shared.fleet.backend import Backend, Dialog
from shared.fleet.profiles import shipped
from tests.unit.shared.fleet.test_fleet import write


def claude(tmp_path: Path, text: str) -> Backend:
    return load_fleet(write(tmp_path, f"backends:\n  claude:\n{text}")).backends["claude"]


def test_one_field_of_a_shipped_rule_is_changed(tmp_path: Path) -> None:
    found = claude(tmp_path, '    screen: {signs: {limit: {versions: "<2.2"}}}\n').screen.signs
    was = shipped()["claude"].screen.signs
    assert found.keys() == was.keys()
    limit, limit_was = found["limit"], was["limit"]
    assert limit is not None
    assert limit_was is not None
    assert limit == limit_was.model_copy(update={"versions": "<2.2"})


def test_a_shipped_rule_is_taken_away_and_another_added(tmp_path: Path) -> None:
    found = claude(
        tmp_path, "    screen: {signs: {done: null, mine: {says: failed, match: x}}}\n    titles: {idle: }\n"
    )
    assert found.screen.signs["done"] is None
    mine = found.screen.signs["mine"]
    assert mine is not None
    assert mine.says is Activity.FAILED
    assert found.titles["idle"] is None
    assert found.titles["busy"] == shipped()["claude"].titles["busy"]


def dialogs(backend: Backend) -> dict[str, Dialog]:
    return {dialog.id: dialog for dialog in backend.screen.dialogs}


def test_a_dialog_of_one_s_own_comes_before_the_shipped_ones(tmp_path: Path) -> None:
    found = claude(tmp_path, "    screen: {dialogs: [{id: mine, match: '^Sure', says: a question}]}\n")
    was = shipped()["claude"].screen.dialogs
    assert [dialog.id for dialog in found.screen.dialogs] == ["mine", *(dialog.id for dialog in was)]
    assert found.screen.dialogs[1:] == was


def test_one_field_of_a_shipped_dialog_is_changed(tmp_path: Path) -> None:
    found = claude(tmp_path, '    screen: {dialogs: [{id: permission, versions: "<2.2"}]}\n')
    was = shipped()["claude"]
    assert list(dialogs(found)) == list(dialogs(was))
    assert dialogs(found)["permission"] == dialogs(was)["permission"].model_copy(update={"versions": "<2.2"})
    assert dialogs(found)["permission"].approve == ["1"]


def test_a_dialog_with_another_match_has_none_of_the_shipped_keys(tmp_path: Path) -> None:
    found = claude(tmp_path, "    screen: {dialogs: [{id: permission, match: '^Sure', says: a question}]}\n")
    assert list(dialogs(found)) == list(dialogs(shipped()["claude"]))
    assert dialogs(found)["permission"] == Dialog(id="permission", match="^Sure", says="a question")


def test_a_shipped_dialog_is_taken_away(tmp_path: Path) -> None:
    mine, other = "{like: claude, screen: {dialogs: [{id: menu, match: null}]}}", "{like: mine}"
    fleet = load_fleet(write(tmp_path, f"backends:\n  mine: {mine}\n  other: {other}\n"))
    for name in ("mine", "other"):
        assert dialogs(fleet.backends[name]).keys() == dialogs(shipped()["claude"]).keys() - {"menu"}


def test_dialogs_of_a_backend_of_one_s_own(tmp_path: Path) -> None:
    mine = "{argv: [x], screen: {dialogs: [{id: b, match: b, says: b}, {id: a, match: a, says: a}]}}"
    fleet = load_fleet(write(tmp_path, f"backends:\n  mine: {mine}\n"))
    assert list(dialogs(fleet.backends["mine"])) == ["b", "a"]


def test_hooks_are_of_the_kind_that_the_backend_below_says(tmp_path: Path) -> None:
    hooks = claude(tmp_path, "    hooks: {args: [--mine]}\n").hooks
    assert hooks is not None
    assert (hooks.kind, hooks.args) == ("claude", ["--mine"])
    with pytest.raises(BadFleetFile, match=r"backends\.mine\.hooks: they need `kind`: claude, codex or gemini"):
        load_fleet(write(tmp_path, "backends:\n  mine: {argv: [x], hooks: {args: [--mine]}}\n"))


def test_how_a_copy_is_asked_is_laid_over_the_shipped_one_and_can_be_taken_away(tmp_path: Path) -> None:
    ask, was = claude(tmp_path, "    ask: {model: opus}\n").ask, shipped()["claude"].ask
    assert ask is not None
    assert was is not None
    assert ask == was.model_copy(update={"model": "opus"})
    assert claude(tmp_path, "    ask: null\n").ask is None


@pytest.mark.parametrize(
    ("ask", "fault"),
    [
        ("{argv: [x]}", r"backends\.mine\.ask: it needs `kind`: claude, codex, opencode, gemini or demo"),
        ("{kind: demo}", r"backends\.mine\.ask: it needs `argv`: the command line that asks"),
        ("{kind: aider, argv: [x]}", r"backends\.mine\.ask\.kind: "),
        ("{kind: demo, argv: [x, 'a{model_args}']}", r"ask\.argv.*: \{model_args\} stands for a list"),
    ],
)
def test_a_way_to_ask_that_says_too_little_is_a_fault(tmp_path: Path, ask: str, fault: str) -> None:
    with pytest.raises(BadFleetFile, match=fault):
        load_fleet(write(tmp_path, f"backends:\n  mine: {{argv: [x], ask: {ask}}}\n"))


RULE = "says: limited, match: '^! (?P<text>limit)', reason: 'until [{reset}]'"


@pytest.mark.parametrize(
    ("text", "line", "key", "said"),
    [
        ("screen: {signs: {mine: {says: failed}}}", 3, "screen.signs.mine", "a rule needs `says` and `match`"),
        ("screen: {signs: {mine: {match: x}}}", 3, "screen.signs.mine", "a rule needs `says` and `match`"),
        ("titles: {mine: {match: x}}", 3, "titles.mine", "a rule needs `says` and `match`"),
        (
            "screen:\n      signs:\n        lmit: null",
            5,
            "screen.signs.lmit",
            "it is empty, which takes a rule away, but there is none; did you mean 'limit'? allowed are: ",
        ),
        ("titles: {ilde: null}", 3, "titles.ilde", "did you mean 'idle'?"),
        (f"screen: {{signs: {{mine: {{{RULE}}}}}}}", 3, "screen.signs.mine.reason", "{reset} is no group of `match`"),
        (
            "screen:\n      signs:\n        mine:\n          says: failed\n          match: ^x$\n          yes:\n"
            "            - x\n            - y",
            10,
            "screen.signs.mine.yes.1",
            "the rule does not match this sample",
        ),
        (
            "screen: {signs: {mine: {says: failed, match: x, no: [axb]}}}",
            3,
            "screen.signs.mine.no.0",
            "the rule matches this sample, which it must not",
        ),
        (
            'screen: {signs: {limit: {no: ["❯ a\\n  ⎿  You\'ve hit your weekly limit · resets 1:50am"]}}}',
            3,
            "screen.signs.limit.no.0",
            "the rule matches this sample",
        ),
        ("titles: {busy: {yes: [idle]}}", 3, "titles.busy.yes.0", "the rule does not match this sample"),
        ("titles: {busy: {no: [⠐ x]}}", 3, "titles.busy.no.0", "the rule matches this sample, which it must not"),
        ("screen: {dialogs: [{id: mine, match: x}]}", 3, "screen.dialogs.0", "a dialog needs `match` and `says`"),
        ("screen: {dialogs: [{id: mine, says: x}]}", 3, "screen.dialogs.0", "a dialog needs `match` and `says`"),
        (
            "screen: {dialogs: [{id: mneu, match: null}]}",
            3,
            "screen.dialogs.0.match",
            "it is empty, which takes a dialog away, but there is none 'mneu'; did you mean 'menu'?",
        ),
        (
            "screen: {dialogs: [{id: menu, versions: '<3'}, {id: menu, says: x}]}",
            3,
            "screen.dialogs.1.id",
            "there is another dialog 'menu' above",
        ),
        (
            "screen: {dialogs: [{id: mine, match: ^x$, says: x, yes: [x, y]}]}",
            3,
            "screen.dialogs.0.yes.1",
            "the rule does not match this sample",
        ),
        (
            "screen: {dialogs: [{id: mine, match: x, says: x, no: [axb]}]}",
            3,
            "screen.dialogs.0.no.0",
            "the rule matches this sample, which it must not",
        ),
        (
            'screen: {dialogs: [{id: permission, yes: ["● hello"]}]}',
            3,
            "screen.dialogs.0.yes.0",
            "the rule does not match this sample",
        ),
        ("screen: {dialogs: [{id: mine, asks: sleep, match: x, says: x}]}", 3, "screen.dialogs.0.asks", "waiting"),
        ("screen: {signs: {limit: {versions: 2.1.3}}}", 3, "screen.signs.limit.versions", "not a range of versions"),
        ("screen: {signs: {limit: {style: pink}}}", 3, "screen.signs.limit.style", "allowed are: faint, grey, red"),
        ("screen: {signs: {limit: {below: top}}}", 3, "screen.signs.limit.below", "allowed are: last_prompt, box"),
        ("screen: {signs: {limit: {says: limitd}}}", 3, "screen.signs.limit.says", "did you mean 'limited'?"),
        ("screen: {signs: {limit: {match: '('}}}", 3, "screen.signs.limit.match", "not a regular expression"),
    ],
)
def test_a_wrong_rule_is_named(tmp_path: Path, text: str, line: int, key: str, said: str) -> None:
    with pytest.raises(BadFleetFile) as bad:
        claude(tmp_path, f"    {text}\n")
    (sentence,) = str(bad.value).split("\n")
    assert f"fleet.yaml, line {line}: backends.claude.{key}: " in sentence
    assert said in sentence


def test_samples_are_read_with_the_rest_of_the_backend(tmp_path: Path) -> None:
    """Where the last prompt is and which style it asks for is that of the shipped rule."""
    quoted = "You've hit your weekly limit · resets 1:50am"
    shipped_limit = claude(tmp_path, f'    screen: {{signs: {{limit: {{no: ["{quoted}"]}}}}}}\n').screen.signs["limit"]
    assert shipped_limit is not None
    assert (shipped_limit.no, shipped_limit.says) == ([quoted], "limited")
    mine = claude(
        tmp_path,
        "    screen:\n      signs:\n        mine:\n          says: failed\n          match: '^! out$'\n"
        '          yes: ["❯ go\\n! out"]\n          no: ["! out\\n\\n❯ go"]\n',
    ).screen.signs["mine"]
    assert mine is not None
    assert (mine.match, mine.says) == ("^! out$", "failed")


def test_a_rule_is_taken_from_the_backend_that_this_one_is_like(tmp_path: Path) -> None:
    mine, other = "{like: claude, screen: {signs: {done: null}}}", "{like: mine, titles: {busy: null}}"
    fleet = load_fleet(write(tmp_path, f"backends:\n  mine: {mine}\n  other: {other}\n"))
    assert fleet.backends["other"].screen.signs["done"] is None
    assert fleet.backends["other"].titles["busy"] is None
