"""The fleet's private broker: its address, its passwords and its program.

The names here are cheap to import. `preparation` writes the broker's files; only `services/broker` needs it.
"""

from shared.messaging.broker.credentials import NoCredentials, credentials, ensure_credentials
from shared.messaging.broker.endpoints import BadEndpoint, Endpoint, endpoint
from shared.messaging.broker.program import BrokerKind, BrokerProgram, NoBroker, find_program

__all__ = [
    "BadEndpoint",
    "BrokerKind",
    "BrokerProgram",
    "Endpoint",
    "NoBroker",
    "NoCredentials",
    "credentials",
    "endpoint",
    "ensure_credentials",
    "find_program",
]
