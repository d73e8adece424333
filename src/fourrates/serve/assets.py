"""The files of the live page, its own and those shared with the report."""

from __future__ import annotations

import hashlib
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from fourrates.serve.front import Call

TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
SHARED = {
    "uPlot.min.css": "vendor/uPlot.min.css",
    "uPlot.iife.min.js": "vendor/uPlot.iife.min.js",
    "drawing.js": "drawing.js",
    "theme.css": "theme.css",
}


class Asset:
    """A file that browsers revalidate at each visit, so an update takes effect at once."""

    def __init__(self, name: str, content: bytes) -> None:
        self.content = content
        etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        self.headers = {"etag": etag, "cache-control": "no-cache", "content-type": TYPES[name.rpartition(".")[2]]}

    async def answer(self, request: Request) -> Response:
        if request.headers.get("if-none-match") == self.headers["etag"]:
            return Response(status_code=304, headers=self.headers)
        return Response(self.content, headers=self.headers)


def page_calls() -> list[Call]:
    package = files("fourrates")  # no import of the report, which needs Jinja2
    own, report = package / "serve" / "page", package / "report"
    contents = {file.name: file.read_bytes() for file in own.iterdir() if file.name.rpartition(".")[2] in TYPES}
    contents |= {name: (report / path).read_bytes() for name, path in SHARED.items()}
    index = Asset("index.html", contents.pop("index.html"))
    assets = {f"/static/{name}": Asset(name, content) for name, content in contents.items()}
    return [Call("GET", path, asset.answer, scope="open") for path, asset in {"/": index, **assets}.items()]
