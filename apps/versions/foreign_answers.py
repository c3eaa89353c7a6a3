"""Answers of servers that anybody may have named: read whole, within a size and a time, never unpacked.

A timeout of a connection is between two bytes, so a server may drip for ever; and a few packed bytes may be
gigabytes.
"""

import time

import httpx

MOST_BYTES = 4 * 1024 * 1024


class AnswerTooLong(httpx.HTTPError):
    """The answer has more bytes than are read."""


def answer_read(
    client: httpx.Client, request: httpx.Request, *, within_s: float, most_bytes: int = MOST_BYTES
) -> httpx.Response:
    """Status, ``Retry-After`` and bytes of the answer, as they were sent; redirects are not followed. Raises
    AnswerTooLong, ``httpx.ReadTimeout`` after ``within_s`` seconds, and what sending raises."""
    end = time.monotonic() + within_s
    request.headers["Accept-Encoding"] = "identity"
    answer = client.send(request, follow_redirects=False, stream=True)
    data = bytearray()
    try:
        for part in answer.iter_raw():
            data += part
            if len(data) > most_bytes:
                raise AnswerTooLong(f"more than {most_bytes:,} bytes")
            if time.monotonic() > end:
                raise httpx.ReadTimeout(f"no end of the answer within {within_s:g} s", request=request)
    finally:
        answer.close()
    told = {name: answer.headers[name] for name in ("retry-after",) if name in answer.headers}
    return httpx.Response(answer.status_code, headers=told, content=bytes(data), request=request)
