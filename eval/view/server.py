"""The web server: the built front end, and the answers of a library as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gumshoe.errors import ConfigError, GumshoeError
from gumshoe.eval.view.library import Library, NotThere
from gumshoe.eval.view.static import PAGE, PAGE_FILES
from gumshoe.eval.web import Guard

DOWNLOAD = {"content-disposition": 'attachment; filename="trajectory.json"'}


def make_app(library: Library, *, loopback: bool, names: Iterable[str] = (), token: str | None = None) -> Guard:
    """The application, guarded. Takes the arguments of `Guard`."""
    routes = [
        Route("/", _file("index.html")),
        *(Route(f"/{name}", _file(name)) for name in PAGE_FILES if name != "index.html"),
        Route("/api/overview", _answer(lambda _: library.overview())),
        Route("/api/rows", _answer(lambda request: _rows(library, request))),
        Route("/api/search", _answer(lambda request: library.search(request.query_params.get("q", "")))),
        Route("/api/episode/{key}", _answer(lambda request: library.episode(request.path_params["key"]))),
        Route("/api/mask/{key}", _answer(lambda request: library.mask(request.path_params["key"]))),
        Route("/api/evaluation/{slug}", _answer(lambda request: library.evaluation(request.path_params["slug"]))),
        Route("/api/task/{slug}/{task:path}", _answer(lambda request: library.task(**request.path_params))),
        Route("/api/raw/{key}", _answer(lambda request: library.raw(request.path_params["key"]), DOWNLOAD)),
    ]
    app = GZipMiddleware(Starlette(routes=routes), minimum_size=2_000, compresslevel=3)
    return Guard(app, loopback=loopback, names=names, token=token, page=True)


def _file(name: str) -> Callable[[Request], Response]:
    def answer(_: Request) -> Response:
        return Response((PAGE / name).read_bytes(), media_type=PAGE_FILES[name])

    return answer


def _answer(ask: Callable[[Request], Any], headers: Mapping[str, str] | None = None) -> Callable[..., Any]:
    """An endpoint that answers in JSON, in a thread: the index and the files are read there."""

    def work(request: Request) -> tuple[int, bytes]:
        try:
            found = ask(request)
            return 200, found if isinstance(found, bytes) else _json(found)
        except NotThere as error:
            return 404, _json({"error": str(error)})
        except ConfigError as error:
            return 400, _json({"error": str(error)})
        except GumshoeError as error:
            return 422, _json({"error": str(error)})

    async def endpoint(request: Request) -> Response:
        status, body = await run_in_threadpool(work, request)
        return Response(body, status, headers, media_type="application/json")

    return endpoint


def _rows(library: Library, request: Request) -> Any:
    given = request.query_params
    try:
        last = int(given.get("last", "0"))
    except ValueError:
        raise ConfigError("`last` is the number of a row") from None
    return library.rows(given.get("era", ""), min(max(last, 0), 2**60))


def _json(data: Any) -> bytes:
    """Encodes in ASCII, so that lone surrogates do no harm; NaN is refused, as in browsers."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).encode()
