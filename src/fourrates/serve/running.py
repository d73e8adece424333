"""A server on its address, until it is asked to end."""

from __future__ import annotations

import ctypes
import gc
import json
import logging
import socket
import sys
from contextlib import suppress
from typing import Any

import uvicorn

from fourrates.serve.app import Service
from fourrates.serve.limits import uvicorn_options
from fourrates.serve.settings import Settings
from fourrates.serve.views import iso

SWITCH = 0.0005  # seconds that the event loop may keep the writer waiting for its turn, or the other way round
BACKLOG = 1_024  # connections that wait to be taken
LARGE = 1 << 20  # bytes from which memory is mapped separately, and returned when free
M_MMAP_THRESHOLD = -3  # of mallopt


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": iso(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def run(settings: Settings) -> None:
    """Serve until interrupted; the log goes to stderr as lines of JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler], force=True)
    sys.setswitchinterval(SWITCH)
    _give_back_memory()
    listening = _listen(settings)
    address = listening.getsockname()[:2]
    app = Service(settings)
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=10,
        backlog=BACKLOG,
        **uvicorn_options(settings.max_body),
    )
    try:
        _Server(config, f"fourrates serve: http://{host}:{address[1]}  (data in {settings.data})").run([listening])
    finally:
        if app.failure is not None:  # uvicorn exits without a reason
            raise app.failure


def _give_back_memory() -> None:
    """Make glibc return large free blocks, such as a snapshot after it was written.

    By default it raises the limit each time, up to 32 MB, and keeps smaller blocks, so a day of snapshots fragments
    half of the memory. Other systems have no such call and no need of it.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE)


class _Server(uvicorn.Server):
    """A server that has its process to itself.

    It prints its address when it answers there. On shutdown it ends the page's streams, which would be waited for
    otherwise.
    """

    def __init__(self, config: uvicorn.Config, greeting: str) -> None:
        super().__init__(config)
        self.greeting = greeting

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Bring everything back; it stays, so that the garbage collector need not look at it again and again."""
        await super().startup(sockets)
        gc.freeze()
        if self.started:
            print(self.greeting, flush=True)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.config.app.hub.close()  # type: ignore[union-attr]
        await super().shutdown(sockets)


def _listen(settings: Settings) -> socket.socket:
    """A socket on the address, so that it is known to be free before anything else is done."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    if sys.platform != "win32":
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host.strip("[]"), settings.port))
    except OSError as error:
        listening.close()
        raise OSError(error.errno, error.strerror, f"{settings.host}:{settings.port}") from None
    listening.set_inheritable(True)
    return listening
