"""The fleet's private broker: where it listens and with which password to come.

What is named here is cheap to import. Starting a broker needs more: that is `shared.broker.preparation.prepare`, which
only `services/broker` calls.
"""

from shared.broker.endpoints import BadEndpoint, Endpoint, endpoint
from shared.broker.passwords import NoCredentials, credentials, ensure_credentials
from shared.broker.program import Kind, NoBroker, Program, find_program

__all__ = [
    "BadEndpoint",
    "Endpoint",
    "Kind",
    "NoBroker",
    "NoCredentials",
    "Program",
    "credentials",
    "endpoint",
    "ensure_credentials",
    "find_program",
]
