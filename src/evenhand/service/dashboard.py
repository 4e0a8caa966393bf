"""The dashboard: pages that this process renders itself, with no script or font from elsewhere.

A session comes from an API key with the scope "audit" and can look, never change: all writing
routes ask for the key in a header, which no foreign page can send. Templates escape everything; the
content policy allows no inline script or style.
"""

import secrets
import time
from functools import cache
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, Depends, Request, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from evenhand.errors import EvenhandError
from evenhand.service.app import Service, Serving, service_of
from evenhand.service.board import read_board, stamp
from evenhand.service.config import Product
from evenhand.service.explaining import explain
from evenhand.service.problems import ProblemError

ROUTER = APIRouter(include_in_schema=False)
PAGES = Path(__file__).parent / "pages"
COOKIE, HOURS = "evenhand_session", 8
HTML = "text/html; charset=utf-8"


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(PAGES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(stamp=stamp, percent=lambda x: f"{x:.1%}", number=lambda x: f"{x:,}")
    return made


def page(name: str, status: int = 200, **values: Any) -> Response:
    """A rendered template."""
    return Response(_environment().get_template(name).render(values), status, media_type=HTML)


class Sessions:
    """Who has logged in: a random name -> (hash of the API key, end). Lost with the process, on
    purpose.
    """

    def __init__(self, service: Service) -> None:
        self._service, self._open = service, dict[str, tuple[str, float]]()

    def begin(self, token: str) -> str | None:
        """A session for a key that may audit."""
        key = self._service.keys.find(token)
        if key is None or "audit" not in key.scopes:
            return None
        now = time.time()
        self._open = {name: entry for name, entry in self._open.items() if entry[1] > now}
        name = secrets.token_urlsafe(32)
        self._open[name] = (key.sha256, now + HOURS * 3600)
        return name

    def tenant(self, name: str | None) -> str | None:
        """Whose session it is, while its key is valid."""
        digest, end = self._open.get(name or "", ("", 0.0))
        key = self._service.keys.by_digest(digest) if end > time.time() else None
        return None if key is None or "audit" not in key.scopes else key.tenant

    def end(self, name: str | None) -> None:
        """Log out."""
        self._open.pop(name or "", None)


def sessions_of(request: Request) -> Sessions:
    """The sessions of the process."""
    state = request.app.state
    if not hasattr(state, "sessions"):
        state.sessions = Sessions(service_of(request))
    found: Sessions = state.sessions
    return found


Here = Annotated[Sessions, Depends(sessions_of)]


def _products(request: Request, service: Service, sessions: Sessions) -> list[Product]:
    """What the visitor may see; nobody: an empty list."""
    tenant = sessions.tenant(request.cookies.get(COOKIE))
    if service.settings.open_dashboard:
        return list(service.desk.products.values())
    return [product for product in service.desk.products.values() if product.tenant == tenant]


def _chosen(request: Request, products: list[Product]) -> Product:
    wanted = request.query_params.get("product")
    return next((product for product in products if product.name == wanted), products[0])


@ROUTER.get("/")
async def root() -> Response:
    """Where people land."""
    return Response(status_code=303, headers={"Location": "/dashboard"})


@ROUTER.get("/dashboard")
async def board(request: Request, service: Serving, sessions: Here) -> Response:
    """The whole page."""
    return await _board(request, service, sessions, "board.html")


@ROUTER.get("/dashboard/live")
async def live(request: Request, service: Serving, sessions: Here) -> Response:
    """The part that changes, for the script that keeps the page fresh."""
    return await _board(request, service, sessions, "live.html")


async def _board(request: Request, service: Service, sessions: Sessions, template: str) -> Response:
    products = _products(request, service, sessions)
    if not products:
        return _login_first()
    product = _chosen(request, products)
    found = await service.desk.off_loop(
        lambda: read_board(service.desk, product, service.tally(product))
    )
    return page(
        template,
        board=found,
        products=products,
        product=product,
        open=service.settings.open_dashboard,
    )


@ROUTER.get("/dashboard/decision")
async def decision(request: Request, service: Serving, sessions: Here) -> Response:
    """One decision with its explanation."""
    products = _products(request, service, sessions)
    if not products:
        return _login_first()
    product, key = _chosen(request, products), request.query_params.get("key", "").strip()
    shared: dict[str, Any] = {
        "products": products,
        "product": product,
        "key": key[:200],
        "open": service.settings.open_dashboard,
    }
    try:
        found = await service.desk.off_loop(lambda: explain(service.desk, product.tenant, key))
    except EvenhandError as refusal:
        return page("decision.html", 404, found=None, refusal=str(refusal), **shared)
    return page("decision.html", found=found, refusal=None, **shared)


# coming and going


def _login_first() -> Response:
    return Response(status_code=303, headers={"Location": "/dashboard/login"})


@ROUTER.get("/dashboard/login")
async def login_form() -> Response:
    """Ask for a key."""
    return page("login.html", refused=False, open=False)


def _require_same_site(request: Request) -> None:
    """A form of this very site: browsers say where a request comes from, and scripts cannot lie
    about it.
    """
    site = request.headers.get("sec-fetch-site", "same-origin")
    origin = request.headers.get("origin")
    host = request.headers.get("host", "")
    if site not in ("same-origin", "none") or (
        origin is not None and urlsplit(origin).netloc != host
    ):
        raise ProblemError(
            403,
            "unsafe-origin",
            "this form was not sent by the dashboard.",
            hint="open the dashboard.",
        )


@ROUTER.post("/dashboard/login")
async def login(request: Request, service: Serving, sessions: Here) -> Response:
    """Exchange a key for a session. The key goes into no URL and no log."""
    _require_same_site(request)
    wait = service.strangers.take(request.client.host if request.client else "?")
    token = parse_qs((await request.body()).decode("ascii", "replace")).get("key", [""])[0].strip()
    name = sessions.begin(token) if wait == 0 else None
    if name is None:
        return page("login.html", 403, refused=True, open=False)
    secure = "; Secure" if request.url.scheme == "https" else ""
    cookie = f"{COOKIE}={name}; HttpOnly; SameSite=Strict; Path=/dashboard; Max-Age={HOURS * 3600}{secure}"
    return Response(status_code=303, headers={"Location": "/dashboard", "Set-Cookie": cookie})


@ROUTER.post("/dashboard/logout")
async def logout(request: Request, sessions: Here) -> Response:
    """End the session."""
    _require_same_site(request)
    sessions.end(request.cookies.get(COOKIE))
    cookie = f"{COOKIE}=; HttpOnly; SameSite=Strict; Path=/dashboard; Max-Age=0"
    return Response(status_code=303, headers={"Location": "/dashboard/login", "Set-Cookie": cookie})


@ROUTER.get("/dashboard/style.css")
async def style() -> Response:
    """The look."""
    return Response((PAGES / "style.css").read_bytes(), media_type="text/css")


@ROUTER.get("/dashboard/live.js")
async def script() -> Response:
    """What keeps the page fresh."""
    return Response((PAGES / "live.js").read_bytes(), media_type="text/javascript")


@ROUTER.get("/dashboard/icon.svg")
async def icon() -> Response:
    """An equals sign."""
    return Response((PAGES / "icon.svg").read_bytes(), media_type="image/svg+xml")
