"""The dashboard: pages that this process renders itself, with no script or font from elsewhere.

A session comes from an API key with the scope "audit" and can look, never change: all writing
routes ask for the key in a header, which no foreign page can send. Templates escape everything; the
content policy allows no inline script or style.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, Depends, Request, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from evenhand.errors import EvenhandError
from evenhand.service.dashboard_data import PublishedPolicy, read_dashboard
from evenhand.service.explanations import AS_DRAWN, explain
from evenhand.service.keys import SESSION_SECONDS, address_of
from evenhand.service.problems import ProblemError
from evenhand.service.settings import Product
from evenhand.service.state import Service

ROUTER = APIRouter(include_in_schema=False)
PAGES = Path(__file__).parent / "pages"
COOKIE = "evenhand_session"
WIDTH, HEIGHT = 460.0, 240.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 12.0, 12.0, 30.0


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(PAGES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        stamp=lambda at: time.strftime("%Y-%m-%d %H:%M", time.gmtime(at)) + " UTC",
        percent=lambda share: f"{share:.1%}",
        number=lambda number: f"{number:,}",
    )
    return made


def _page(name: str, status: int = 200, **values: Any) -> Response:
    html = _environment().get_template(name).render(values)
    return Response(html, status, media_type="text/html; charset=utf-8")


def _redirect(path: str, cookie: str | None = None) -> Response:
    headers = {"Location": path} if cookie is None else {"Location": path, "Set-Cookie": cookie}
    return Response(status_code=303, headers=headers)


@dataclass(frozen=True)
class Visitor:
    """Somebody in front of a browser, with the products that they may see."""

    service: Service
    products: list[Product]
    product: Product | None


async def _visitor(request: Request) -> Visitor:
    service: Service = request.app.state.service
    tenant = service.sessions.tenant(request.cookies.get(COOKIE))
    products = [
        product
        for product in service.settings.products
        if service.settings.open_dashboard or product.tenant == tenant
    ]
    wanted = request.query_params.get("product")
    chosen = next((one for one in products if one.name == wanted), next(iter(products), None))
    return Visitor(service, products, chosen)


Visiting = Annotated[Visitor, Depends(_visitor)]


@ROUTER.get("/")
async def root() -> Response:
    """Where people land."""
    return _redirect("/dashboard")


@ROUTER.get("/dashboard")
async def dashboard(visitor: Visiting) -> Response:
    """The whole page."""
    return await _dashboard(visitor, "dashboard.html")


@ROUTER.get("/dashboard/live")
async def live(visitor: Visiting) -> Response:
    """The part that changes, for the script that keeps the page fresh."""
    return await _dashboard(visitor, "live.html")


async def _dashboard(visitor: Visitor, template: str) -> Response:
    service, product = visitor.service, visitor.product
    if product is None:
        return _redirect("/dashboard/login")
    counts = service.counts[product.tenant, product.name]
    data = await asyncio.to_thread(read_dashboard, service.decider, product, counts)
    past = data.history
    return _page(
        template,
        data=data,
        gap_svg=gap_chart(past, product.limit, data.now) if past else None,
        share_svg=share_chart(past, data.now) if past else None,
        as_drawn=AS_DRAWN,
        products=visitor.products,
        product=product,
        open=service.settings.open_dashboard,
    )


@ROUTER.get("/dashboard/decision")
async def decision(request: Request, visitor: Visiting) -> Response:
    """One decision with its explanation."""
    service, product = visitor.service, visitor.product
    if product is None:
        return _redirect("/dashboard/login")
    key = request.query_params.get("key", "").strip()
    explained, refused = None, None
    try:
        explained = await asyncio.to_thread(explain, service.decider, product.tenant, key)
    except EvenhandError as refusal:
        refused = str(refusal)
    return _page(
        "decision.html",
        200 if refused is None else 404,
        found=explained,
        refusal=refused,
        products=visitor.products,
        product=product,
        key=key[:200],
        open=service.settings.open_dashboard,
    )


# logging in and out


@ROUTER.get("/dashboard/login")
async def login_form() -> Response:
    """Ask for a key."""
    return _page("login.html", refused=False, open=False)


@ROUTER.post("/dashboard/login")
async def login(request: Request) -> Response:
    """Exchange a key for a session. The key goes into no URL and no log."""
    _require_same_site(request)
    service: Service = request.app.state.service
    wait = service.key_guard.by_address.take(address_of(request))
    token = parse_qs((await request.body()).decode("ascii", "replace")).get("key", [""])[0].strip()
    name = service.sessions.begin(token) if wait == 0 else None
    if name is None:
        return _page("login.html", 403, refused=True, open=False)
    return _redirect("/dashboard", _cookie(name, SESSION_SECONDS, request.url.scheme == "https"))


@ROUTER.post("/dashboard/logout")
async def logout(request: Request) -> Response:
    """End the session."""
    _require_same_site(request)
    request.app.state.service.sessions.end(request.cookies.get(COOKIE))
    return _redirect("/dashboard/login", _cookie("", 0, secure=False))


def _cookie(value: str, seconds: int, secure: bool) -> str:
    flags = "HttpOnly; SameSite=Strict; Path=/dashboard"
    return f"{COOKIE}={value}; {flags}; Max-Age={seconds}{'; Secure' if secure else ''}"


def _require_same_site(request: Request) -> None:
    """Browsers say from which site a form comes, and scripts cannot lie about it."""
    site = request.headers.get("sec-fetch-site", "same-origin")
    origin = request.headers.get("origin")
    host = request.headers.get("host", "")
    if site not in ("same-origin", "none") or (
        origin is not None and urlsplit(origin).netloc != host
    ):
        raise ProblemError(
            "unsafe-origin", "this form was not sent by the dashboard.", hint="open the dashboard."
        )


# files


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


# charts: inline SVG; the colours come from the page's classes


@dataclass(frozen=True)
class Axes:
    """From a time and a value to a place in the chart."""

    first: float
    last: float
    lowest: float
    highest: float

    def x(self, at: float) -> float:
        """Where a time lies."""
        return LEFT + (WIDTH - LEFT - RIGHT) * (at - self.first) / max(self.last - self.first, 1e-9)

    def y(self, value: float) -> float:
        """Where a value lies; what is outside is drawn at the border."""
        inside = min(max(value, self.lowest), self.highest)
        share = (inside - self.lowest) / (self.highest - self.lowest)
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share)

    def steps(self, times: Sequence[float], values: Sequence[float]) -> list[str]:
        """The corners of a step function; each value holds until the next time, or the end."""
        return [
            f"{self.x(at):.1f},{self.y(value):.1f}"
            for begin, end, value in zip(times, [*times[1:], self.last], values, strict=True)
            for at in (begin, end)
        ]

    def line(self, kind: str, value: float) -> str:
        """A horizontal line."""
        y = f"{self.y(value):.1f}"
        return f'<line class="{kind}" x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}"/>'

    def svg(
        self,
        name: str,
        title: str,
        ticks: Sequence[float],
        words: Callable[[float], str],
        parts: Sequence[str],
    ) -> Markup:
        """The chart with its title, its ticks and its first and last day."""
        frame = []
        for tick in ticks:
            place = f'x="{LEFT - 6}" y="{self.y(tick) + 4:.1f}"'
            frame.append(self.line("grid", tick))
            frame.append(f'<text class="tick end" {place}>{escape(words(tick))}</text>')
        for at, anchor in ((self.first, ""), (self.last, " end")):
            place = f'x="{self.x(at):.1f}" y="{HEIGHT - 8}"'
            day = time.strftime("%Y-%m-%d", time.gmtime(at))
            frame.append(f'<text class="tick{anchor}" {place}>{day}</text>')
        box = f'viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-labelledby="{name}"'
        titled = f'<svg {box}><title id="{name}">{escape(title)}</title>'
        return Markup(f"{titled}{''.join([*frame, *parts])}</svg>")


def gap_chart(past: Sequence[PublishedPolicy], limit: float, now: float) -> Markup:
    """The band in which the gap of each policy is certified to lie, and the two limits."""
    top, times = max(1.35 * limit, 1e-3), [one.at for one in past]
    axes = Axes(times[0], max(now, times[-1] + 1.0), -top, top)
    upper = axes.steps(times, [one.upper for one in past])
    lower = axes.steps(times, [one.lower for one in past])
    parts = [f'<polygon class="band" points="{" ".join([*upper, *reversed(lower)])}"/>']
    parts += [f'<polyline class="edge" points="{" ".join(line)}"/>' for line in (upper, lower)]
    parts += [axes.line("limit", edge) for edge in (limit, -limit)]
    place = f'x="{WIDTH - RIGHT - 4}" y="{axes.y(limit) - 6:.1f}"'
    parts.append(f'<text class="limit-word end" {place}>limit {limit:g}</text>')
    title = (
        f"Gap of the deployed policy: between {past[-1].lower:+.3f} and {past[-1].upper:+.3f}, "
        f"limit {limit:g}"
    )
    ticks = (-limit, 0.0, limit)
    return axes.svg("gap-title", title, ticks, lambda v: f"{v:+.2g}" if v else "0", parts)


def share_chart(past: Sequence[PublishedPolicy], now: float) -> Markup:
    """The weights of the learned policy and of the audit over time."""
    times = [one.at for one in past]
    axes = Axes(times[0], max(now, times[-1] + 1.0), 0.0, 1.0)
    lines = {
        "learned": ("learned policy", [one.learned for one in past]),
        "audit": ("audit coin", [one.audit for one in past]),
    }
    parts = [
        f'<polyline class="line {kind}" points="{" ".join(axes.steps(times, values))}"/>'
        for kind, (_, values) in lines.items()
    ]
    title = ", ".join(f"{name} {values[-1]:.1%}" for name, values in lines.values())
    return axes.svg("share-title", title, (0.0, 0.5, 1.0), lambda v: f"{v:.0%}", parts)
