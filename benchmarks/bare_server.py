"""What the service is held against: a Starlette endpoint that decodes the same body and keeps nothing.

python benchmarks/bare_server.py PORT
"""

from __future__ import annotations

import sys

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


class Body(msgspec.Struct):
    """Columns as lists."""

    y_true: list[int] = []
    y_pred: list[int] = []
    id: list[str] = []
    by: dict[str, list[str]] = {}


decoder = msgspec.json.Decoder(Body)


async def events(request: Request) -> Response:
    body = decoder.decode(await request.body())
    return Response(msgspec.json.encode({"accepted": len(body.y_true)}), media_type="application/json")


async def ready(request: Request) -> Response:
    return Response(b"ready\n")


app = Starlette(routes=[Route("/api/monitors/{name}/events", events, methods=["POST"]), Route("/readyz", ready)])

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
