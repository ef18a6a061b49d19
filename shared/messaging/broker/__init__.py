"""The fleet's private broker: where it listens and with which password to come.

What is named here is cheap to import. Starting a broker needs more: that is `shared.broker.preparation.prepare`, which
only `services/broker` calls.
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
