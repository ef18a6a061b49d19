"""A scripted model that speaks the three wires of the agent programs and remembers every prompt it was given."""

from tests.real_agents.model.server import Model, Prompt

__all__ = ["Model", "Prompt"]
