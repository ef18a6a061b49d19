"""Cards, comments and the fleet as the page gets them: plain JSON."""

import json

from services.board.cards import CardContext, update
from services.board.comments import Discussion
from services.board.documents import card_document, comment_document, fleet_document
from services.board.memory import CardMemory
from shared.client.presence import PresenceReport
from shared.contract.states import Activity, CardState
from tests.fakes.records import START
from tests.unit.board.samples import NOW, doing, make_fleet, news

CONTEXT = CardContext.of(make_fleet(), {"builder": doing(Activity.WORKING)}, {})


def test_a_card_is_the_state_that_is_published() -> None:
    card, _ = update(CONTEXT, "builder", CardMemory(), START)
    document = json.loads(json.dumps(card_document(card)))
    assert CardState.model_validate(document) == card
    assert document["column"] == "working"


def test_a_comment_has_what_the_page_shows() -> None:
    discussion = Discussion(CardMemory()).observe(news("drift.moved", recorded="/a", found="/b"), NOW, NOW)
    discussion = discussion.say("stop", "ada", NOW).say("resume", "ada", NOW).say("hm", "ada", NOW)
    documents = [comment_document("builder", comment) for comment in discussion.comments]
    json.dumps(documents)
    assert [document["kind"] for document in documents] == ["observed", "stopped", "resumed", "said"]
    assert documents[0] == {
        "card": "builder",
        "number": 1,
        "time": START.isoformat(),
        "kind": "observed",
        "by": "muster",
        "about": "drift.moved",
        "tone": "bad",
        "urgency": "news",
        "text": "it moved",
        "recorded": "/a",
        "found": "/b",
        "times": 1,
    }


def test_the_fleet_says_what_is_wrong() -> None:
    document = fleet_document(CONTEXT, PresenceReport(), "line 1: x\n\nline 2: y", "tmux does not answer")
    json.dumps(document)
    assert (document["name"], document["host"]) == ("nowhere", "box")
    assert document["faults"] == ["line 1: x", "line 2: y"]
    assert document["tmux"] == {"up": False, "said": "tmux does not answer"}
    assert document["broker"]["up"] is True
    well = fleet_document(CONTEXT, None, "")
    assert (well["faults"], well["tmux"]["up"], well["broker"]["up"]) == ([], True, False)
    assert "spawner" in [service["name"] for service in well["services"]]
    assert {service["status"] for service in well["services"]} == {"down"}
