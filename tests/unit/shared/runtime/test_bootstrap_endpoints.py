"""Where a service looks for its broker."""

from pathlib import Path

import pytest

from shared.fleet import Fleet, load_fleet
from shared.messaging.broker import BadEndpoint, Endpoint
from shared.messaging.broker.endpoints import SavedEndpoint, save_endpoint
from shared.runtime.bootstrap import BROKER_URL, endpoints_of
from shared.system.files import make_directory
from shared.system.lock import hold


@pytest.fixture(autouse=True)
def no_override(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BROKER_URL, raising=False)


def fleet(directory: Path, text: str = "agents: {}\n") -> Fleet:
    path = directory / "fleet.yaml"
    path.write_text(text)
    return load_fleet(path)


DECLARED = "broker: {endpoints: ['mqtt://one', 'mqtts://two:8884']}\n"


def test_by_default_it_is_the_private_broker_once_there_is_one(tmp_path: Path) -> None:
    found = fleet(tmp_path)
    assert endpoints_of(found) == []
    make_directory(found.home / "broker")
    save_endpoint(found.home, SavedEndpoint("mosquitto", 20883, 0))
    with hold(found.home / "run" / "broker.lock", "broker"):
        assert endpoints_of(found) == [Endpoint("127.0.0.1", 20883)]


def test_while_the_private_broker_is_down_another_program_on_its_port_is_not_used(tmp_path: Path) -> None:
    found = fleet(tmp_path)
    make_directory(found.home / "broker")
    save_endpoint(found.home, SavedEndpoint("mosquitto", 20883, 0))
    assert endpoints_of(found) == []


def test_the_fleet_file_may_name_others(tmp_path: Path) -> None:
    assert endpoints_of(fleet(tmp_path, DECLARED)) == [Endpoint("one", 1883), Endpoint("two", 8884, tls=True)]


@pytest.mark.parametrize("text", ["agents: {}\n", DECLARED])
def test_the_environment_overrides_the_fleet_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(BROKER_URL, "mqtt://broker:18883")
    assert endpoints_of(fleet(tmp_path, text)) == [Endpoint("broker", 18883)]
    monkeypatch.setenv(BROKER_URL, "mqtt://a mqtt://b:1884")
    assert endpoints_of(fleet(tmp_path, text)) == [Endpoint("a", 1883), Endpoint("b", 1884)]
    monkeypatch.setenv(BROKER_URL, "")
    assert len(endpoints_of(fleet(tmp_path, text))) == text.count("://")


def test_a_bad_address_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BROKER_URL, "broker:18883")
    with pytest.raises(BadEndpoint, match="broker:18883"):
        endpoints_of(fleet(tmp_path))
