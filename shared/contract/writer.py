"""Turns a typed document into a topic and bytes. Envelopes are made only here."""

import json
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from shared.contract.envelope import Data, Event
from shared.contract.ids import new_id
from shared.contract.topics import Space, Topic, row_for


@dataclass(frozen=True)
class DocumentWriter:
    """Writes the documents of one service of one host."""

    space: Space
    service: str
    epoch: str

    @cached_property
    def source(self) -> str:
        return f"/{self.space.host}/{self.service}"

    def event(self, event: Event, *, seq: int, time: datetime, cause: str | None) -> tuple[str, bytes]:
        """Topic and payload of an event. Its id follows from epoch and `seq`, so a repeat has the same id."""
        row = row_for(event)
        return self._wrap(row, event, f"{row.family}.{event.kind}", f"{self.epoch}-{seq}", seq, time, cause)

    def state(self, state: Data, *, seq: int, time: datetime) -> tuple[str, bytes]:
        row = row_for(state)
        return self._wrap(row, state, f"{row.family}.state", new_id(), seq, time, None)

    def _wrap(
        self, row: Topic, data: Data, kind: str, document_id: str, seq: int, time: datetime, cause: str | None
    ) -> tuple[str, bytes]:
        # Formatted by hand, since this is most of the cost of an event. Only the cause may need escaping.
        caused = f'"cause":{json.dumps(cause)},' if cause is not None else ""
        subject = str(getattr(data, row.ids[0])) if row.ids else self.service
        text = (
            f'{{"type":"muster.{kind}","subject":"{subject}","time":"{time.isoformat()}",'
            f'"data":{data.model_dump_json(exclude_none=True)},{caused}"source":"{self.source}",'
            f'"seq":{seq},"epoch":"{self.epoch}","id":"{document_id}","specversion":"1.0"}}'
        )
        return row.name_of(self.space, data), text.encode()
