"""The backends that ship with Muster: data files, and the demo agent. A fleet file may override any of them."""

from pathlib import Path

DIRECTORY = Path(__file__).parent
