"""Serving the page: on loopback unless told otherwise, its own files only, no requests elsewhere.

Gradio has many routes that this page does not use: uploads, files, a proxy, a recorder of runs.
`OwnRoutes` lets through those that it uses. It also refuses names of hosts other than those of the
address, so that a page from elsewhere cannot reach the app through a name that it points to
127.0.0.1 (DNS rebinding).
"""

from __future__ import annotations

import logging
import socket
import webbrowser
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoglot.errors import IsoglotError
from isoglot.explore.app import build_app, import_gradio

if TYPE_CHECKING:
    from isoglot.explore.session import ExploreSession

LOOPBACK = "127.0.0.1"
PORT = 7860
_LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")
_PAGES = frozenset(("/", "/config", "/theme.css", "/favicon.ico", "/manifest.json", "/robots.txt"))
_FOLDERS = (
    "/assets/",
    "/static/",
    "/svelte/",
    "/gradio_api/app_id",
    "/gradio_api/heartbeat/",
    "/gradio_api/queue/",
    "/gradio_api/reset",
    "/gradio_api/startup-events",
    "/gradio_api/theme.css",
)
_STYLE, _SCRIPT = (Path(__file__).parent / name for name in ("style.css", "page.js"))

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_App = Callable[[_Message, _Receive, _Send], Awaitable[None]]


class OwnRoutes:
    """An ASGI app that lets through the requests of the page, and answers others with 403."""

    def __init__(self, app: _App, hosts: tuple[str, ...]) -> None:
        """Wrap `app`; `hosts` are accepted in the Host header, none: all."""
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and not self.allows(scope["path"], _host(scope)):
            headers = [(b"content-type", b"text/plain; charset=utf-8")]
            await send({"type": "http.response.start", "status": 403, "headers": headers})
            await send({"type": "http.response.body", "body": b"isoglot explore: not served\n"})
            return
        await self._app(scope, receive, send)

    def allows(self, path: str, host: str) -> bool:
        """Whether a path is one of the page's, asked for under an accepted name."""
        is_own = path in _PAGES or path.startswith(_FOLDERS)
        return is_own and ".." not in path and (not self._hosts or host in self._hosts)


def _host(scope: _Message) -> str:
    """The name in the Host header, without the port."""
    given = next((value for name, value in scope["headers"] if name == b"host"), b"")
    name, _, port = given.decode("latin-1").rpartition(":")
    return name if port.isdecimal() and name else given.decode("latin-1")


def make_server(session: ExploreSession, host: str = LOOPBACK) -> Any:
    """A `uvicorn.Server` of the session's page, to be run on a socket of `bind`."""
    gradio = import_gradio()
    import fastapi
    import uvicorn

    fonts = ("system-ui", "Noto Sans", "sans-serif")
    theme = gradio.themes.Default(
        primary_hue="teal", font=fonts, font_mono=("ui-monospace", "Noto Sans Mono", "monospace")
    )
    web = fastapi.FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    gradio.mount_gradio_app(
        web,
        build_app(session),
        path="/",
        footer_links=[],
        run_history=False,
        allowed_paths=[],
        max_file_size=1,
        ssr_mode=False,
        enable_monitoring=False,
        pwa=False,
        mcp_server=False,
        theme=theme,
        css=_STYLE.read_text("utf-8"),
        js=_SCRIPT.read_text("utf-8").partition("\n")[2],  # without its comment
    )
    hosts = _LOCAL_NAMES if _is_loopback(host) else ()
    config = uvicorn.Config(
        OwnRoutes(web, hosts),
        log_level="error",
        access_log=False,
        timeout_graceful_shutdown=1,  # the page holds a connection open
    )
    return uvicorn.Server(config)


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except (OSError, OverflowError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).partition(" (while")[0]
        raise IsoglotError(
            f"{host}:{port} cannot be opened ({reason}). Choose another --port (0: any free one) "
            "or --host."
        ) from error


def sharing_note(session: ExploreSession, host: str) -> str | None:
    """What others can reach through an address that is not loopback; none for loopback."""
    if _is_loopback(host):
        return None
    data = [str(file) for file in (*session.pairs_files, *session.text_files.values())]
    data += [str(file) for file in (*session.dictionary_files, *session.results_files)]
    data += [] if session.corpus is None else [str(session.corpus.url or session.corpus.folder)]
    files = f", and read sentences of {', '.join(data)}" if data else ""
    models = ", ".join(model.name for model in session.models)
    return (
        f"--host {host}: anybody who can reach this machine over the network can open this page "
        f"without a password, run {models} with any text{files}."
    )


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def serve(
    session: ExploreSession,
    *,
    host: str = LOOPBACK,
    port: int = PORT,
    browser: bool = True,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve the page until Ctrl-C.

    Args:
        session: models and data.
        host: address to listen on.
        port: its port; 0: any free one.
        browser: open the page in the default browser.
        ready: called with the page's address when it answers.
    """
    with bind(host, port) as bound:
        server = make_server(session, host)
        name = f"[{host}]" if ":" in host else host
        address = f"http://{name}:{bound.getsockname()[1]}/"

        def announce() -> None:
            if ready is not None:
                ready(address)
            if browser:
                webbrowser.open(address)

        _run(server, bound, announce)


def _run(server: Any, bound: socket.socket, announce: Callable[[], None]) -> None:
    """Run a server until it is told to stop; Ctrl-C is the usual way to stop it."""
    started, stop = server.startup, server.handle_exit

    async def startup(*arguments: Any, **named: Any) -> None:
        await started(*arguments, **named)
        announce()

    def handle_exit(*signal: Any) -> None:
        # connections of open pages are cut, which is no error
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        stop(*signal)

    server.startup, server.handle_exit = startup, handle_exit
    try:
        server.run(sockets=[bound])
    except KeyboardInterrupt:
        return
