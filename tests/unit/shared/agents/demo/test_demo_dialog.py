"""The demo agent's dialogs: answered by one key, and recognised by the rules of its own profile."""

import pytest

from shared.agents.demo.demo_dialog import ESCAPE, DemoAnswer, DemoDialog, choice, limit_menu, permission
from shared.contract.states import Activity
from shared.fleet.profiles import shipped
from shared.screen import read_screen, read_signs

RULE = "─" * 60
PLAN = permission("terraform plan -out  tf.plan | It reads the state. | It changes nothing.")
WAYS = choice("Which way? | Dual writes | Copy at night")


def on_screen(dialog: DemoDialog) -> str:
    return "\n".join(["● Read(main.tf)", RULE, *dialog.rows()])


def test_a_permission_dialog_has_the_command_what_it_does_and_two_rows() -> None:
    assert list(PLAN.rows()) == [
        "Do you allow this? terraform plan -out tf.plan",
        *("", "  It reads the state.", "  It changes nothing.", ""),
        *("  1. Yes", "  2. No", "1 or 2 · esc to refuse"),
    ]
    assert list(permission("ask x").rows())[:2] == ["Do you allow this? ask x", "  1. Yes"]


@pytest.mark.parametrize(
    ("dialog", "keys", "answer"),
    [
        (PLAN, "1y", DemoAnswer("allowed")),
        (PLAN, f"2n{ESCAPE}", DemoAnswer("refused", goes_on=False)),
        (WAYS, "2", DemoAnswer("chose: Copy at night")),
        (WAYS, ESCAPE, DemoAnswer("left the question open", goes_on=False)),
        (limit_menu(), "1\r", DemoAnswer("bought")),
        (limit_menu(), "2", DemoAnswer("")),
        (PLAN, "3\rx", None),
        (WAYS, "0\r3", None),
        (limit_menu(), f"3{ESCAPE}", None),
    ],
)
def test_one_key_answers_and_others_do_nothing(dialog: DemoDialog, keys: str, answer: DemoAnswer | None) -> None:
    assert [dialog.answers.get(key) for key in keys] == [answer] * len(keys)


@pytest.mark.parametrize(
    ("dialog", "rule", "says", "approve", "deny"),
    [
        (PLAN, "permission", Activity.NEEDS_APPROVAL, ["1"], ["2"]),
        (WAYS, "question", Activity.NEEDS_APPROVAL, [], ["Escape"]),
        (limit_menu(), "limit", Activity.LIMITED, [], []),
    ],
)
def test_its_profile_recognises_each(
    dialog: DemoDialog, rule: str, says: Activity, approve: list[str], deny: list[str]
) -> None:
    backend = shipped()["demo"]
    seen, found = read_signs(backend, on_screen(dialog)), read_screen(backend, on_screen(dialog)).dialog
    assert seen is not None
    assert found is not None
    assert (seen.rule, seen.says, found.approve, found.deny) == (rule, says, approve, deny)
    assert set(approve) <= {key for key, answer in dialog.answers.items() if answer.goes_on}


@pytest.mark.parametrize("text", ["Which way?", "Which way?" + "| x" * 10])
def test_a_question_has_as_many_options_as_there_are_keys(text: str) -> None:
    with pytest.raises(ValueError, match=r"'Which way\?' needs 1 to 9 options: choose Which\? | one | two"):
        choice(text)
