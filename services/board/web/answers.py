"""Answers and refusals in JSON. Every text that leaves the board passes through `encoded`."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from shared.client.visible_text import visible_document
from shared.errors import MusterError

MOST_BODY = 256 * 1024


class RequestRefused(MusterError):
    """A request that gets no answer but a sentence."""

    def __init__(self, status: int, said: str, code: str = "") -> None:
        self.status, self.code = status, code
        super().__init__(said)


def encoded(document: Any) -> bytes:
    """A document as JSON in one line, with control and invisible characters made visible."""
    return json.dumps(visible_document(document), ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def answer(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(encoded(document), status, headers, media_type="application/json")


def refusal(refused: RequestRefused) -> Response:
    allow = {"allow": "GET, POST"} if refused.status == 405 else None
    return answer(
        {"said": str(refused), **({"code": refused.code} if refused.code else {})}, refused.status, headers=allow
    )


async def read_object(request: Request) -> dict[str, Any]:
    """The JSON object in a request's body. Raises RequestRefused for anything else."""
    announced = request.headers.get("content-length", "0")
    if announced.isdecimal() and int(announced) > MOST_BODY:
        raise _too_large()
    body = bytearray()
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > MOST_BODY:
                raise _too_large()
    except ClientDisconnect as gone:
        raise RequestRefused(400, "the request ended before its body did") from gone
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestRefused(400, "the body is no JSON document that can be read") from error
    if not isinstance(document, dict):
        raise RequestRefused(400, "the body is no JSON object")
    return document


def _too_large() -> RequestRefused:
    return RequestRefused(413, f"the body is larger than {MOST_BODY // 1024} KiB")
