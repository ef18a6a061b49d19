"""The conversation of the scripted agent, as people read it."""

import json
from pathlib import Path

from shared.agents.demo.transcript import FLEET, READER
from shared.agents.transcript import Speaker

LINES = (
    {"time": 1.0, "who": "user", "text": "go"},
    {"time": 2.0, "who": "agent", "text": "All done."},
    {"time": 3.0, "who": "limit", "text": "usage limit reached", "resets": 9.0},
    {"who": "agent"},
)


def test_a_conversation_is_found_and_read(tmp_path: Path) -> None:
    file = tmp_path / ".muster" / "demo" / "c1.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    env = {FLEET: str(tmp_path / "fleet.yaml")}
    assert READER.locate(env, tmp_path, "c1") == file
    assert READER.locate(env, tmp_path, None) is None, "it may be another agent's"
    assert READER.locate(env, tmp_path, "../c1") is None
    assert READER.locate({}, tmp_path, "c1") is None
    assert READER.conversation_in(file, tmp_path) == "c1"
    *read, note = READER.entries(file, "c1")
    assert [(each.who, each.text, each.failed) for each in read] == [
        (Speaker.USER, "go", False),
        (Speaker.AGENT, "All done.", False),
        (Speaker.NOTE, "usage limit reached", True),
    ]
    assert "1 of the lines" in note.text
    assert READER.user_texts(file, 0, "c1")[0] == ["go"]
