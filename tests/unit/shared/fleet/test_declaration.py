"""What the fleet file may say of the board's address."""

from typing import Any

import pytest
from pydantic import ValidationError

from shared.fleet.declaration import BoardSettings


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("127.0.0.1:8080", ("127.0.0.1", 8080)),
        ("[::1]:65535", ("::1", 65535)),
    ],
)
def test_an_address_is_read(listen: str, address: tuple[str, int]) -> None:
    assert BoardSettings(listen=listen).address == address


@pytest.mark.parametrize(
    "listen",
    ["", "8080", "127.0.0.1", "localhost:8080", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "::1:80", "127.1:²"],
)
def test_what_is_no_address_is_refused(listen: str) -> None:
    with pytest.raises(ValidationError, match="not an IP address and a port; write it like"):
        BoardSettings(listen=listen)


@pytest.mark.parametrize("listen", ["0.0.0.0:8080", "[::]:8080", "10.0.0.5:0", "[fe80::1]:80"])
def test_others_are_let_in_only_by_an_address_that_people_type(listen: str) -> None:
    with pytest.raises(ValidationError, match="set `public_url`"):
        BoardSettings(listen=listen)
    assert BoardSettings(listen=listen, public_url="https://board.example").public_host == "board.example"


@pytest.mark.parametrize(
    ("url", "host", "origin"),
    [
        ("https://board.example", "board.example", "https://board.example"),
        ("https://Board.Example:443/", "board.example", "https://board.example"),
        ("https://board.example:8443", "board.example:8443", "https://board.example:8443"),
        ("http://10.0.0.5:8080", "10.0.0.5:8080", "http://10.0.0.5:8080"),
        ("http://[fd00::1]", "[fd00::1]", "http://[fd00::1]"),
        (None, None, None),
    ],
)
def test_a_browser_s_words_for_the_public_address(url: str | None, host: str | None, origin: str | None) -> None:
    settings = BoardSettings(public_url=url)
    assert (settings.public_host, settings.public_origin) == (host, origin)


@pytest.mark.parametrize(
    "url",
    [
        *("board.example", "ftp://board.example", "https://", "https://board.example/path", "https://b.example?x=1"),
        *("https://board.example#x", "https://ada:secret@board.example", "https://b.example:0", "https://b.example:x"),
        *("https://board.\nexample", "https://bo ard.example", "https://bücher.example"),
    ],
)
def test_what_nobody_can_type_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ValidationError) as refused:
        BoardSettings(public_url=url)
    said: list[Any] = [error["msg"] for error in refused.value.errors()]
    assert said == [
        "Value error, not the address of a page; write it like https://board.example or http://10.0.0.5:8080,"
        " without a path, a user or a password"
    ]
