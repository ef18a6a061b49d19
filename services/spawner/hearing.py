"""What the spawner takes up of the reconciler's news: which conversation an agent is really in.

All else it sees for itself. What is told of another host or of an earlier session is none of its business.
"""

from collections.abc import Iterable
from dataclasses import replace

from services.spawner.scene import Scene
from shared.events import Identified
from shared.following import Heard


def take_up(scene: Scene, heard: Iterable[Heard]) -> None:
    for each in heard:
        found = each.envelope.data
        if each.host != scene.fleet.space.host or not isinstance(found, Identified):
            continue
        known = scene.known(found.agent)
        if known.spawn == found.spawn and known.conversation != found.conversation:
            scene.remember(found.agent, replace(known, conversation=found.conversation))
