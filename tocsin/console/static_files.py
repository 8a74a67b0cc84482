"""The files that browsers load: styles, scripts, the icon, and third-party scripts of the package build.

Guarantee: only files that were in the package at the start are served, so no path leads outside of it.
A file that is asked for by its content (`?v=`) may be kept by the browser for a year; without that, the
browser asks again each time and gets 304.

The build puts third-party scripts into `static/vendor` with a manifest. Without them (a build that could
not reach npm) the pages work, and do not update themselves.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tocsin.api.access.permission import Public
from tocsin.core.errors import NotFound

PATH = "/static"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_YEAR = "public, max-age=31536000, immutable"


@dataclass(frozen=True)
class StaticFile:
    content: bytes
    compressed: bytes
    media_type: str
    digest: str


@lru_cache(maxsize=1)
def static_files() -> dict[str, StaticFile]:
    """Every file by its path below `static/`, and the style of the pictures."""
    found = dict(_files_in(files("tocsin.console") / "static", ""))
    found["css/pictures.css"] = _read_file(files("tocsin.pictures") / "pictures.css")
    return found


def _files_in(folder: Traversable, prefix: str) -> list[tuple[str, StaticFile]]:
    found: list[tuple[str, StaticFile]] = []
    for entry in folder.iterdir():
        media_type = _TYPES.get(entry.name[entry.name.rfind(".") :])
        if entry.is_dir():
            found += _files_in(entry, f"{prefix}{entry.name}/")
        elif media_type is not None:
            found.append((prefix + entry.name, _read_file(entry)))
    return found


def _read_file(entry: Traversable) -> StaticFile:
    content = entry.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:16]
    media_type = _TYPES[entry.name[entry.name.rfind(".") :]]
    return StaticFile(content, gzip.compress(content, 9, mtime=0), media_type, digest)


@lru_cache(maxsize=1)
def _vendor_names() -> dict[str, str]:
    """The file of each third-party script, by its plain name."""
    manifest = files("tocsin.console") / "static" / "vendor" / "manifest.json"
    if not manifest.is_file():
        return {}
    entries = json.loads(manifest.read_bytes())["files"]
    return {name: f"vendor/{entry['file']}" for name, entry in entries.items()}


def asset(path: str) -> str:
    """The URL of a file of ours, with its content in the query."""
    return f"{PATH}/{path}?v={static_files()[path].digest}"


def vendor(name: str) -> str:
    """The URL of a third-party script; empty if the package was built without it."""
    path = _vendor_names().get(name, "")
    return asset(path) if path in static_files() else ""


async def serve_file(request: Request) -> Response:
    path = request.path_params["path"]
    file = static_files().get(path)
    if file is None:
        raise NotFound(f"there is no file {path!r}")
    tag = f'"{file.digest}"'
    headers = {
        "etag": tag,
        "cache-control": _YEAR if request.query_params.get("v") == file.digest else "no-cache",
        "vary": "accept-encoding",
        "x-content-type-options": "nosniff",
        "cross-origin-resource-policy": "same-origin",
    }
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["content-encoding"] = "gzip"
        return Response(file.compressed, headers=headers, media_type=file.media_type)
    return Response(file.content, headers=headers, media_type=file.media_type)


ROUTES = (
    Route(
        PATH + "/{path:path}",
        Public(serve_file, because="the files are the same for every instance and have no data"),
        methods=["GET"],
    ),
)
