"""docs/reliability.md says what its source says, and names only tests that exist."""

from dataclasses import replace

import pytest

from tests import reliability
from tests.reliability import PAGE, SERVICES, page


def test_the_page_is_what_its_source_gives() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run ./muster test --write"


@pytest.mark.parametrize("test", ["e2e/test_nowhere.py", "e2e/test_bus.py::test_nothing"])
def test_a_test_that_does_not_exist_is_an_error(test: str, monkeypatch: pytest.MonkeyPatch) -> None:
    unshown = replace(SERVICES, faults=(replace(SERVICES.faults[0], tests=(test,)),))
    monkeypatch.setattr(reliability, "GROUPS", (unshown,))

    with pytest.raises(SystemExit, match=r"names .*, which"):
        page()
