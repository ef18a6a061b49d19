"""The names of the page and their cookies, and limits."""

from pathlib import Path

import pytest

from services.board.web.access import PageOrigins, RateLimit
from shared.fleet import Declaration, Fleet

STAMP = Fleet(Path("/fleet/fleet.yaml"), Declaration()).stamp


def origins(**board: str) -> PageOrigins:
    return PageOrigins(Fleet(Path("/fleet/fleet.yaml"), Declaration.model_validate({"board": board})), 80)


PUBLIC = {"public_url": "https://board.example"}


@pytest.mark.parametrize(
    ("board", "known", "unknown"),
    [
        ({}, ["127.0.0.1:80", "localhost:80"], ["127.0.0.1", "[::1]:80", "127.0.0.1:81", "board.example"]),
        ({"listen": "[::1]:0"}, ["[::1]:80", "localhost:80"], ["127.0.0.1:80"]),
        ({"listen": "127.0.0.2:0"}, ["127.0.0.2:80"], ["localhost:80", "127.0.0.1:80"]),
        ({"listen": "0.0.0.0:0", **PUBLIC}, ["127.0.0.1:80", "localhost:80", "board.example"], ["0.0.0.0:80"]),
        ({"listen": "[::]:0", **PUBLIC}, ["[::1]:80", "board.example"], ["127.0.0.1:80", "board.example:443"]),
        ({"listen": "10.0.0.5:0", **PUBLIC}, ["board.example"], ["10.0.0.5:80", "localhost:80"]),
    ],
)
def test_only_its_own_names_are_known(board: dict[str, str], known: list[str], unknown: list[str]) -> None:
    for host in known:
        scheme = "https" if host == "board.example" else "http"
        assert origins(**board).origin_of(host) == f"{scheme}://{host}"
    assert {host: origins(**board).origin_of(host) for host in unknown} == dict.fromkeys(unknown)
    assert origins(**board).origin_of(None) is None


def test_a_cookie_by_tls_can_t_be_set_by_others() -> None:
    both = origins(**PUBLIC)
    assert both.cookie("127.0.0.1:80", "x") == f"muster-{STAMP}=x; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict"
    secure = f"__Host-muster-{STAMP}=x; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict; Secure"
    assert both.cookie("board.example", "x") == secure
    assert "Max-Age=0;" in both.cookie("board.example", "")


def test_a_limit_counts_what_it_allows() -> None:
    now = [0.0]
    limit = RateLimit(2, 10.0, lambda: now[0])
    assert [limit.allows() for _ in range(3)] == [True, True, False]
    now[0] = 9.9
    assert not limit.allows()
    now[0] = 10.0
    assert [limit.allows() for _ in range(3)] == [True, True, False]
