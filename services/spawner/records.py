"""The agents' own records of their conversations, as far as the spawner needs them."""

from pathlib import Path
from typing import Any

from services.spawner.scene import Scene


class Records:
    def mark(self, scene: Scene, agent: str) -> Any:
        return None

    def has(self, scene: Scene, agent: str, mark: Any, text: str) -> bool | None:
        return None

    def purge(self, scene: Scene, agent: str, conversation: str) -> Path | None:
        return None
