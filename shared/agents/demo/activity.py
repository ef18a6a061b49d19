"""Muster's own scripted agent: its transcript has an answer where its turn ends, or at once where it asks something."""

from shared.agents.transcript import Document
from shared.agents.transcript_activity import TURN_ENDED, TranscriptActivity
from shared.contract.states import Activity


class DemoActivity(TranscriptActivity):
    def _take(self, document: Document) -> None:
        when = document["time"]
        if not isinstance(when, int | float):
            return
        match document.get("who"):
            case "user":
                self._say(Activity.WORKING, when, f"took a prompt: {document.get('text')}", "prompt")
            case "agent":
                self._take_words(str(document.get("text")))
                self._say(Activity.WAITING, when, "it has answered", TURN_ENDED, weak=True)
            case "limit":
                self._fail(Activity.LIMITED, when, str(document["text"]), resets_at=float(document["resets"]))
            case "error":
                self._fail(Activity.FAILED, when, str(document["text"]))


READING = DemoActivity
