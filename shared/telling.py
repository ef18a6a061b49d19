"""From a typed document to bytes on a topic: the envelope is put around it here, and nowhere else."""

from dataclasses import dataclass
from datetime import datetime

from shared.events import Data, Envelope, Event
from shared.ids import new_id
from shared.topics import Space, Topic, family, row_for


@dataclass(frozen=True)
class Teller:
    """Who speaks, from where, in which life of the journal."""

    space: Space
    service: str
    epoch: str

    @property
    def source(self) -> str:
        return f"/{self.space.host}/{self.service}"

    def event(self, event: Event, *, seq: int, time: datetime, cause: str | None) -> tuple[str, bytes]:
        row = row_for(event)
        return self._wrap(row, event, f"muster.{family(row)}.{event.kind}", seq, time, cause)

    def state(self, state: Data, *, seq: int, time: datetime) -> tuple[str, bytes]:
        row = row_for(state)
        return self._wrap(row, state, f"muster.{family(row)}.state", seq, time, None)

    def _wrap(
        self, row: Topic, data: Data, kind: str, seq: int, time: datetime, cause: str | None
    ) -> tuple[str, bytes]:
        envelope = Envelope[Data].model_construct(
            type=kind,
            subject=str(getattr(data, row.ids[0])),
            time=time,
            data=data,
            cause=cause,
            source=self.source,
            seq=seq,
            epoch=self.epoch,
            id=new_id(),
            specversion="1.0",
        )
        payload = envelope.model_dump_json(exclude_none=True, serialize_as_any=True)
        return row.name_of(self.space, data), payload.encode()
