"""Traces by OpenTelemetry: one span for each request, and inside of it for deciding, for reported
outcomes and for training. They are off unless the settings say `traces = true`; then nothing of
OpenTelemetry is imported, and `span` gives back one object that does nothing.

A span says how much and how long, never who: no key, person, feature, group or label is in it. The
route stands for the path, because paths hold keys of applications; of an error only its type is
recorded, because its words could quote a request.
"""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenhand.errors import InvalidInput

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span, Tracer

Fact = str | int | float | bool
Note = Callable[..., None]
"""Adds facts to the work that is under way: `note(refused=1)`."""
NOTHING: AbstractContextManager[Note] = contextlib.nullcontext(lambda **_: None)
"""Traces are off."""


@contextlib.contextmanager
def _recorded(tracer: "Tracer", name: str, facts: dict[str, Fact]) -> Iterator[Note]:
    """A span of OpenTelemetry, current while the work is under way."""
    with tracer.start_as_current_span(
        name,
        attributes=_named(facts),
        record_exception=False,  # its words could quote a request
        set_status_on_exception=False,
    ) as current:
        try:
            yield lambda **more: current.set_attributes(_named(more))
        except BaseException as error:
            _failed(current, type(error).__name__)
            raise


def _named(facts: dict[str, Fact]) -> dict[str, Fact]:
    return {f"evenhand.{name}": fact for name, fact in facts.items()}


def _failed(span: "Span", why: str) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", why)
    span.set_status(Status(StatusCode.ERROR))


_provider: "TracerProvider | None" = None
_tracer: "Tracer | None" = None


def span(
    part: Literal["decide", "observe", "train"], **facts: Fact
) -> AbstractContextManager[Note]:
    """A span for a part of the work, to be used in a `with` statement.

    Parameters
    ----------
    part : {"decide", "observe", "train"}
        The work; the span is called "evenhand.decide" and so on.
    **facts : str, int, float or bool
        Numbers, and names of products: nothing that is said of a person.

    Returns
    -------
    context manager
        The span, or `NOTHING` where traces are off; it gives a function that adds facts.

    Examples
    --------
    >>> with span("decide", applications=3) as note:
    ...     note(refused=1)
    """
    if _tracer is None:
        return NOTHING
    return _recorded(_tracer, f"evenhand.{part}", facts)


def require_installed() -> None:
    """Raise InvalidInput unless the extra is installed."""
    try:
        import opentelemetry.exporter.otlp.proto.http.trace_exporter
        import opentelemetry.sdk.trace  # noqa: F401
    except ImportError as error:
        raise InvalidInput(
            "traces of [service] is true, but OpenTelemetry is not installed "
            f"({error.name} is missing).",
            hint="pip install 'evenhand-service[traces]', or leave traces out.",
        ) from error


def start(exporter: "SpanExporter | None" = None) -> None:
    """Record spans from now on.

    Parameters
    ----------
    exporter : SpanExporter, optional
        Where they go, each at once. By default to a collector over OTLP/HTTP, together, by a thread
        of OpenTelemetry; its variables say where that is (OTEL_EXPORTER_OTLP_ENDPOINT, by default
        http://localhost:4318) and what else it allows (OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER).

    Raises
    ------
    InvalidInput
        If the extra is not installed.
    """
    global _provider, _tracer
    require_installed()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

    stop()
    named = Resource({"service.name": "evenhand"}).merge(OTELResourceDetector().detect())
    _provider = TracerProvider(resource=named, shutdown_on_exit=False)
    if exporter is None:
        _provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    else:
        _provider.add_span_processor(SimpleSpanProcessor(exporter))
    _tracer = _provider.get_tracer("evenhand_service")


def stop() -> None:
    """Send what has not been sent, and record nothing any more."""
    global _provider, _tracer
    if _provider is not None:
        _provider.shutdown()
    _provider = None
    _tracer = None


@contextlib.contextmanager
def tracing(wanted: bool) -> Iterator[None]:
    """Record spans inside of it, where the settings want them."""
    if wanted:
        start()
    try:
        yield
    finally:
        stop()


class TracedRequests:
    """An ASGI application with a span around each request, a child of the caller's span if the
    request names one (W3C's `traceparent`).
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        tracer = _tracer
        if scope["type"] != "http" or tracer is None:
            await self.app(scope, receive, send)
            return
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        # only these two: other headers hold keys, and baggage could hold anything
        wanted = (b"traceparent", b"tracestate")
        carrier = {
            name.decode(): value.decode("latin-1")
            for name, value in scope["headers"]
            if name in wanted
        }
        method = scope["method"] if scope["method"] in METHODS else "_OTHER"
        with tracer.start_as_current_span(
            method,
            TraceContextTextMapPropagator().extract(carrier),
            SpanKind.SERVER,
            attributes={"http.request.method": method},
            record_exception=False,
            set_status_on_exception=False,
        ) as current:

            async def noting(message: Message) -> None:
                if message["type"] == "http.response.start":
                    status = message["status"]
                    current.set_attribute("http.response.status_code", status)
                    if status >= 500:
                        _failed(current, str(status))
                await send(message)

            try:
                await self.app(scope, receive, noting)
            finally:
                # known once somebody has answered; unknown paths are those of strangers
                route = scope.get("evenhand.route") or getattr(scope.get("route"), "path", None)
                if route is not None:
                    current.update_name(f"{method} {route}")
                    current.set_attribute("http.route", route)


METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
"""What a client may call itself stays out of a span."""
