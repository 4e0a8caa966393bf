"""The dashboard: pages that this process renders itself, with no script or font from elsewhere.

A session comes from an API key with the scope "audit" and can look, never change: all writing
routes ask for the key in a header, which no foreign page can send. Templates escape everything; the
content policy allows no inline script or style.
"""

import asyncio
import math
import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Annotated, ClassVar, Literal
from urllib.parse import parse_qs, urlencode, urlsplit

from fastapi import APIRouter, Depends, Request, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from evenhand.contracts import Json
from evenhand.errors import EvenhandError
from evenhand.fairness.certificate import Certificate, plain_label
from evenhand_service.decider import ActivePolicy, Decider
from evenhand_service.explanations import AS_DRAWN, explain
from evenhand_service.keys import SESSION_SECONDS
from evenhand_service.ledger import (
    CertificateRow,
    Counts,
    Event,
    Invalid,
    PolicyRecord,
    Wanted,
    list_decisions,
)
from evenhand_service.ledger.decision_list import OUTCOMES_LISTED
from evenhand_service.ledger.publishing import active
from evenhand_service.problems import ProblemError
from evenhand_service.settings import DAY, Product
from evenhand_service.state import SMALLEST_GROUP, OverruledLine, ProductCounts, Service
from evenhand_service.threads import Found, Given

ROUTER = APIRouter(include_in_schema=False)
PAGES = Path(__file__).parent / "pages"
COOKIE = "evenhand_session"
MOST_CHANGES = 300
"""Changes of who decides that are drawn."""

State = Literal["broken", "killed", "uncertified", "suspended", "shadow", "learning", "certified"]


# what is shown, read from the ledger as one record; groups of fewer than SMALLEST_GROUP people are
# not named in it


@dataclass(frozen=True)
class GroupLine:
    """One group: how many people, and how many of them were accepted."""

    name: str
    people: int
    accepted: int

    @property
    def rate(self) -> float:
        """The share that was accepted."""
        return self.accepted / self.people


@dataclass(frozen=True)
class Deciding:
    """Who decides from a time on: rules that were learned, accepting all applicants (the audit
    coin), rejecting all applicants. The three add up to 1.
    """

    at: float
    learned: float
    audit: float
    rejecting: float

    @classmethod
    def of(cls, at: float, policy: PolicyRecord) -> "Deciding":
        """Read from a policy."""
        # from the document: nothing is loaded for it
        parts = policy.document["parts"]
        constants = {
            accept: sum(
                part["weight"]
                for part in parts
                if part["hypothesis"] == {"kind": "constant", "accept": accept}
            )
            for accept in (True, False)
        }
        audit = constants[True]
        rejecting = constants[False]
        return cls(at, max(1.0 - audit - rejecting, 0.0), audit, rejecting)


def who_decided(
    policies: Sequence[PolicyRecord], events: Sequence[Event], certified: Sequence[CertificateRow]
) -> tuple[Deciding, ...]:
    """What was in force, from each change on: publications, rollbacks and the kill switch."""
    published = {row.epoch: row.at for row in certified}
    changes = [(p.seq, published[p.epoch]) for p in policies if p.in_lineage]
    changes += [(e.seq, e.at) for e in events if e.action in ("kill", "revive", "rollback")]
    found: list[Deciding] = []
    for seq, at in sorted(changes)[-MOST_CHANGES:]:
        before = [policy for policy in policies if policy.seq <= seq]
        force = active([*before], [event for event in events if event.seq <= seq])
        if force is not None:
            found.append(Deciding.of(at, force.policy))
    return tuple(found)


@dataclass(frozen=True)
class PublishedPolicy:
    """A policy of the past: when it was published, the widest interval of its gaps, its weights,
    and the people behind its certificate.
    """

    at: float
    epoch: int
    lower: float
    upper: float
    weights: Deciding
    people: int

    @classmethod
    def of(cls, policy: PolicyRecord, row: CertificateRow) -> "PublishedPolicy":
        """Read from the policy and its certificate."""
        gaps = row.document["gaps"]
        window = row.document["window"]
        return cls(
            at=row.at,
            epoch=policy.epoch,
            lower=min((gap["low"] for gap in gaps), default=0.0),
            upper=max((gap["high"] for gap in gaps), default=0.0),
            weights=Deciding.of(row.at, policy),
            people=max(window[1] - window[0], 0),
        )


@dataclass(frozen=True)
class DashboardData:
    """Everything on the page of a product; `newest` is what the newest policy says of itself, and
    `booked` the sum of its bookings, whatever decides at the moment.
    """

    broken: str | None
    active: ActivePolicy
    issued: CertificateRow | None
    certificate: Certificate | None
    gaps: tuple[str, ...]
    counts: Counts
    overruled: tuple[OverruledLine, ...]
    groups: tuple[GroupLine, ...]
    hidden: bool
    history: tuple[PublishedPolicy, ...]
    deciding: tuple[Deciding, ...]
    newest: Json
    booked: float
    drift: tuple[Json, ...]
    notes: tuple[str, ...]
    events: tuple[Event, ...]
    now: float

    @property
    def state(self) -> State:
        """What the traffic light is about."""
        if self.broken is not None:
            return "broken"
        if self.active.mode == "killed":
            return "killed"
        if self.certificate is None:
            return "uncertified"
        if self.certificate.status == "suspended":
            return "suspended"
        if self.active.mode == "shadow":
            return "shadow"
        return "learning" if self.active.learned_weight == 0.0 else "certified"


def read_dashboard(decider: Decider, product: Product, counts: ProductCounts) -> DashboardData:
    """Read the ledger once."""
    ledger = decider.ledger
    name = product.name
    counts.refresh()
    in_force = decider.active(product)
    certificates = ledger.certificates(name)
    rows = {row.epoch: row for row in certificates}
    issued = rows.get(in_force.policy.epoch)
    certificate = None if issued is None else Certificate.from_json(issued.document)
    policies = ledger.policies(name)
    events = ledger.events(name)
    lineage = [policy for policy in policies if policy.in_lineage]
    newest = lineage[-1].info if lineage else {}
    shown = {str(plain_label(group)) for group in counts.shown}
    gaps = () if certificate is None else certificate.gaps
    return DashboardData(
        broken=ledger.broken,
        active=in_force,
        issued=issued,
        certificate=certificate,
        gaps=tuple(g.describe() for g in gaps if {str(g.group), str(g.reference)} <= shown),
        counts=ledger.counts(name),
        overruled=counts.overruled_lines(counts.shown),
        groups=tuple(GroupLine(str(g), counts.people[g], counts.accepted[g]) for g in counts.shown),
        hidden=any(0 < n < SMALLEST_GROUP for g, n in counts.people.items() if g is not None),
        history=tuple(PublishedPolicy.of(policy, rows[policy.epoch]) for policy in lineage),
        deciding=who_decided(policies, events, certificates),
        newest=newest,
        booked=math.fsum(one["share"] for one in newest.get("delta", ())),
        drift=tuple(
            {**one, "share_of_alarm": one["evidence"] / one["alarm_at"]}
            for one in newest.get("drift", ())
            if one["people"] >= SMALLEST_GROUP
        ),
        notes=tuple(_without_small_groups(note, shown) for note in newest.get("notes", ())),
        events=tuple(events[-8:][::-1]),
        now=ledger.clock(),
    )


def _without_small_groups(note: Json, shown: set[str]) -> str:
    """The text of a note; one about a group that is too small to be shown names nobody."""
    if note["kind"] == "outside":
        return (
            "people of groups that are not the certificate's are outside of it; "
            "the certificate names and counts them."
        )
    if note["group"] is not None and str(note["group"]) not in shown:
        return "only constants are deployed: a group lacks people."
    return str(note["text"])


# pages


@dataclass(frozen=True)
class Axes:
    """From a time and a value to a place in a chart; `pages/charts.html` draws it."""

    first: float
    last: float
    lowest: float
    highest: float
    width: ClassVar[float] = 460.0
    height: ClassVar[float] = 240.0
    left: ClassVar[float] = 52.0
    right: ClassVar[float] = 448.0
    top: ClassVar[float] = 12.0
    bottom: ClassVar[float] = 210.0

    def x(self, at: float) -> float:
        """Where a time lies."""
        share = (self.right - self.left) * (at - self.first) / max(self.last - self.first, 1e-9)
        return self.left + share

    def y(self, value: float) -> float:
        """Where a value lies; what is outside is drawn at the border."""
        inside = min(max(value, self.lowest), self.highest)
        share = (inside - self.lowest) / (self.highest - self.lowest)
        return self.top + (self.bottom - self.top) * (1 - share)

    def steps(self, times: Sequence[float], values: Sequence[float]) -> list[str]:
        """The corners of a step function: each value holds from its time until the next one, or
        the end.
        """
        return [
            f"{self.x(at):.1f},{self.y(value):.1f}"
            for start, end, value in zip(times, [*times[1:], self.last], values, strict=True)
            for at in (start, end)
        ]

    def stacked(
        self, past: Sequence[Deciding], names: Sequence[str]
    ) -> Iterator[tuple[str, list[str]]]:
        """The corners of one area per name, each upon the ones before it."""
        times = [part.at for part in past]
        below = [0.0] * len(past)
        for name in names:
            above = [b + getattr(part, name) for b, part in zip(below, past, strict=True)]
            yield name, self.steps(times, above) + self.steps(times, below)[::-1]
            below = above


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
        stamp=lambda at: time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at)),
        moment=lambda at: time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at)),
        day=lambda at: time.strftime("%Y-%m-%d", time.gmtime(at)),
        shown=_shown_value,
        percent=lambda share: f"{share:.1%}",
        number=lambda number: f"{number:,}",
    )
    return made


def _shown_value(value: float | bool | str | None) -> str:
    """A feature's value for the eye."""
    if value is None:
        return "missing"
    if isinstance(value, bool | str):
        text = str(value)
        return text if len(text) <= 80 else text[:77] + "..."
    return f"{value:.10g}" if value == round(value, 6) else f"{value:.6g}"


def _page(name: str, status: int = 200, **values: object) -> Response:
    html = _environment().get_template(name).render(values)
    return Response(html, status, media_type="text/html; charset=utf-8")


@dataclass(frozen=True)
class Visitor:
    """Somebody in front of a browser who may look, and the product that was chosen."""

    service: Service
    product: Product

    async def look(
        self, work: Callable[Given, Found], *given: Given.args, **named: Given.kwargs
    ) -> Found:
        """What the work finds, in a thread that deciding and operating do not need."""
        return await self.service.looking.run("dashboard", work, *given, **named)

    def page(self, name: str, status: int = 200, **values: object) -> Response:
        """A page about the product that was chosen."""
        settings = self.service.settings
        mine = {"products": settings.products, "product": self.product}
        return _page(name, status, **mine, open=settings.open_dashboard, **values)


async def _visitor(request: Request) -> Visitor:
    """Who may look; others are sent to the form that asks for a key."""
    service: Service = request.app.state.service
    welcome = service.settings.open_dashboard or service.people_of_proxy.lets_in(request)
    cookie = request.cookies.get(COOKIE)
    if not welcome and cookie is not None:
        await service.decider.current()  # another replica may have revoked the key
        welcome = await asyncio.to_thread(service.sessions.is_open, cookie)
    if not welcome:
        raise HTTPException(303, headers={"Location": "/dashboard/login"})
    products = service.settings.products
    wanted = request.query_params.get("product")
    return Visitor(service, next((one for one in products if one.name == wanted), products[0]))


Visiting = Annotated[Visitor, Depends(_visitor)]


@ROUTER.get("/")
async def root() -> Response:
    """Where people land."""
    return RedirectResponse("/dashboard", 303)


@ROUTER.get("/dashboard")
async def dashboard(visitor: Visiting) -> Response:
    """The whole page."""
    return await _dashboard(visitor, "dashboard.html")


@ROUTER.get("/dashboard/live")
async def live(visitor: Visiting) -> Response:
    """The part that changes, for the script that keeps the page fresh."""
    return await _dashboard(visitor, "live.html")


async def _dashboard(visitor: Visitor, template: str) -> Response:
    service = visitor.service
    product = visitor.product
    counts = service.counts[product.name]
    data = await visitor.look(read_dashboard, service.decider, product, counts)
    first, last = (data.history[0].at, data.history[-1].at) if data.history else (0.0, 0.0)
    last = max([last, *(one.at for one in data.deciding)])
    until = max(data.now, last + 1.0)
    highest = max(1.35 * product.limit, 1e-3)
    return visitor.page(
        template,
        data=data,
        gap_axes=Axes(first, until, -highest, highest),
        share_axes=Axes(first, until, 0.0, 1.0),
        as_drawn=AS_DRAWN,
        page="overview",
    )


@ROUTER.get("/dashboard/certificate")
async def certificate(visitor: Visiting) -> Response:
    """The certificate of the policy in force, as a page that prints well."""
    product = visitor.product
    service = visitor.service
    data = await visitor.look(
        read_dashboard, service.decider, product, service.counts[product.name]
    )
    shown = {group.name for group in data.groups}
    counts = () if data.certificate is None else data.certificate.counts
    return visitor.page(
        "certificate.html",
        certificate=data.certificate,
        issued=data.issued,
        gaps=data.gaps,
        counts=[one for one in counts if str(one.group) in shown],
        active=data.active,
        public_key=service.ledger.keyring.public_key,
        as_drawn=AS_DRAWN,
        page="certificate",
    )


@ROUTER.get("/dashboard/pack")
async def pack(visitor: Visiting) -> Response:
    """How an auditor's pack is written. It names people, which a session must not do in bulk: the
    command needs the keyring.
    """
    product = visitor.product
    settings = visitor.service.settings
    beside = Path(settings.ledger).parent / "service.toml"
    return visitor.page(
        "pack.html",
        config=shlex.quote(str(beside) if beside.is_file() else "service.toml"),
        quoted=shlex.quote(product.name),
        public_key=visitor.service.ledger.keyring.public_key,
        page="pack",
    )


FILTERS = ("decision", "outcome", "group", "policy", "from", "to")
"""By what the list of decisions is filtered, as the form names it."""


@ROUTER.get("/dashboard/decisions")
async def decisions(request: Request, visitor: Visiting) -> Response:
    """The list of decisions: filtered, page by page, each key a link to its explanation."""
    service = visitor.service
    product = visitor.product
    asked = request.query_params
    chosen = {name: asked[name][:200] for name in FILTERS if asked.get(name)}
    policies = await visitor.look(service.ledger.policies, product.name)
    refused = None
    listed = None
    try:
        wanted = _wanted(chosen, {policy.id for policy in policies})
        borders = [asked.get(name) or None for name in ("before", "after")]
        for text in borders:
            if text is not None and not re.fullmatch("[0-9]{1,18}", text):
                begin = "begin again at the newest decisions."
                raise Invalid(f"{text[:40]!r} is no row.", hint=begin)
        before, after = (None if text is None else int(text) for text in borders)
        listed = await visitor.look(
            lambda: list_decisions(service.ledger, product.name, wanted, before=before, after=after)
        )
    except EvenhandError as refusal:
        refused = str(refusal)
    return visitor.page(
        "decisions.html",
        200 if refused is None else 422,
        listed=listed,
        refusal=refused,
        chosen=chosen,
        query=urlencode({"product": product.name, **chosen}),
        outcomes=OUTCOMES_LISTED,
        policies=policies[::-1],
        page="decisions",
    )


def _wanted(chosen: Mapping[str, str], policies: set[str]) -> Wanted:
    """The conditions of a form; Invalid names the field, its value and what it may be."""
    choices = {"decision": ("accepted", "rejected"), "group": ("known", "unknown")}
    flags: dict[str, bool | None] = {}
    for name, (yes, no) in choices.items():
        if chosen.get(name, yes) not in (yes, no):
            raise Invalid(f"{name} is {chosen[name][:40]!r}.", hint=f"it is {yes} or {no}.")
        flags[name] = chosen[name] == yes if name in chosen else None
    if chosen.get("policy", "") not in {"", *policies}:
        raise Invalid(
            f"policy {chosen['policy'][:64]!r} is none of this product's policies.",
            hint="choose one of the list.",
        )
    times: dict[str, float | None] = {"from": None, "to": None}
    for name in times.keys() & chosen.keys():
        try:
            day = datetime.strptime(chosen[name], "%Y-%m-%d").replace(tzinfo=UTC)
        except ValueError:
            raise Invalid(
                f"{name} is {chosen[name][:40]!r}, which is no day.",
                hint="days are written like 2026-01-31 and begin at midnight UTC.",
            ) from None
        times[name] = day.timestamp() + (DAY if name == "to" else 0.0)
    return Wanted(
        flags["decision"],
        chosen.get("outcome"),
        flags["group"],
        chosen.get("policy"),
        times["from"],
        times["to"],
    )


@ROUTER.get("/dashboard/decision")
async def decision(request: Request, visitor: Visiting) -> Response:
    """One decision with its explanation."""
    service = visitor.service
    key = request.query_params.get("key", "").strip()
    explained = None
    refused = None
    try:
        explained = await visitor.look(explain, service.decider, key)
    except EvenhandError as refusal:
        refused = str(refusal)
    return visitor.page(
        "decision.html",
        200 if refused is None else 404,
        explanation=explained,
        refusal=refused,
        key=key[:200],
        page="decision",
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
    wait = service.key_guard.by_address.take(service.people_of_proxy.client(request.scope))
    token = parse_qs((await request.body()).decode("ascii", "replace")).get("key", [""])[0].strip()
    if wait == 0:
        await service.decider.current()
    name = service.sessions.begin(token) if wait == 0 else None
    if name is None:
        return _page("login.html", 403, refused=True, open=False)
    # a proxy in front may end TLS; whoever lies about it keeps a cookie from themselves
    schemes = (request.url.scheme, request.headers.get("x-forwarded-proto"))
    return _with_cookie("/dashboard", name, SESSION_SECONDS, secure="https" in schemes)


@ROUTER.post("/dashboard/logout")
async def logout(request: Request) -> Response:
    """End the session."""
    _require_same_site(request)
    sessions = request.app.state.service.sessions
    await asyncio.to_thread(sessions.end, request.cookies.get(COOKIE))
    return _with_cookie("/dashboard/login", "", 0, secure=False)


def _with_cookie(path: str, value: str, seconds: int, *, secure: bool) -> Response:
    answer = RedirectResponse(path, 303)
    answer.set_cookie(
        COOKIE, value, seconds, path="/dashboard", secure=secure, httponly=True, samesite="strict"
    )
    return answer


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


@cache
def _file(name: str) -> bytes:
    """A file of the pages, read once."""
    return (PAGES / name).read_bytes()


@ROUTER.get("/dashboard/style.css")
async def style() -> Response:
    """The look."""
    return Response(_file("style.css"), media_type="text/css")


@ROUTER.get("/dashboard/live.js")
async def script() -> Response:
    """What keeps the page fresh."""
    return Response(_file("live.js"), media_type="text/javascript")


@ROUTER.get("/dashboard/icon.svg")
async def icon() -> Response:
    """An equals sign."""
    return Response(_file("icon.svg"), media_type="image/svg+xml")
