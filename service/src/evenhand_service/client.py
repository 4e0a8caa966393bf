"""A client of the service, in one file without dependencies: copy it, or import it.

    client = Client("https://decisions.bank.example", key)
    decision = client.decide(Application("a-17", "p-4", "loan", [612.0], "north"))
    if decision.act and decision.accept: ...
    client.report("a-17", 1)

What is lost on the way is asked for again. That is safe, because the name of an application is its
key: the service answers a key that it knows with the bytes of the first answer, and a report that
it has with "repeated". So choose the key before you ask, and keep it with the application.
"""

import json
import random
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Literal, TypeVar
from urllib.parse import quote, urlsplit

Value = float | bool | str | None
Group = str | bool | int | float
Result = TypeVar("Result")
WAITED_FOR = (429, 502, 503, 504)
"""Statuses after which the same request may be answered later."""
LONGEST_WAIT = 30.0
"""Seconds between two tries at most."""
MOST = 1000
"""Applications or outcomes in one request."""


@dataclass(frozen=True)
class Prices:
    """What wrong decisions about a person cost.

    Parameters
    ----------
    false_accept : float
        The price of a false accept.
    false_reject : float
        The price of a false reject.

    Examples
    --------
    >>> Prices(5.0, 1.0).false_accept
    5.0
    """

    false_accept: float
    false_reject: float


@dataclass(frozen=True)
class Application:
    """What is asked.

    Parameters
    ----------
    key : str
        The name of the application, yours, and unique: it is answered once, and then always so.
    person : str
        Who applies.
    product : str
        What for.
    features : sequence or mapping
        The values in the order of the product's features, or by name.
    group : str, bool, int, float or None
        The group of the person, if it is known.
    prices : Prices or None
        For products with prices for each person.

    Examples
    --------
    >>> Application("a-17", "p-4", "loan", [612.0], "north").product
    'loan'
    """

    key: str
    person: str
    product: str
    features: Sequence[Value] | Mapping[str, Value]
    group: Group | None = None
    prices: Prices | None = None


@dataclass(frozen=True)
class Decision:
    """The answer to an application.

    Parameters
    ----------
    accept : bool
        What was drawn.
    act : bool
        Whether it counts; False in shadow mode, where your own decision stands.
    at : float
        When it was drawn, in seconds since 1970.
    audit : bool
        Whether the person was accepted for the audit, whoever they are.
    epoch : int
        The epoch of the policy.
    key : str
        That of the application.
    mode : {"live", "shadow", "killed"}
        How the product decides.
    policy : str
        The policy that decided.
    propensity : float
        The probability of the decision that was drawn.
    row : int
        Its row in the ledger.
    window : str
        The window in which a person meets the same coin.

    Examples
    --------
    >>> Decision(True, True, 0.0, False, 1, "a-17", "live", "ab", 0.5, 7, "w1").accept
    True
    """

    accept: bool
    act: bool
    at: float
    audit: bool
    epoch: int
    key: str
    mode: Literal["live", "shadow", "killed"]
    policy: str
    propensity: float
    row: int
    window: str


@dataclass(frozen=True)
class Outcome:
    """The outcome of an accepted person.

    Parameters
    ----------
    key : str
        That of the application.
    label : {-1, 1}
        1 good, -1 bad.

    Examples
    --------
    >>> Outcome("a-17", -1).label
    -1
    """

    key: str
    label: Literal[-1, 1]


@dataclass(frozen=True)
class Recorded:
    """What became of a report.

    Parameters
    ----------
    result : str
        "recorded", "repeated", "disputed" or another word of the service.
    status : str
        Where the decision stands now.
    row : int
        The row of the report in the ledger.
    overruled : bool
        Whether a human has overruled the decision.

    Examples
    --------
    >>> Recorded("recorded", "resolved", 12).overruled
    False
    """

    result: str
    status: str
    row: int
    overruled: bool = False


class Problem(Exception):
    """Why the service refused a request (RFC 9457).

    Parameters
    ----------
    document : dict
        The problem document.

    Examples
    --------
    >>> refused = Problem({"type": "urn:evenhand:problem:gone", "status": 410, "title": "Gone",
    ...                    "detail": "the person has been erased.", "hint": "use a new key."})
    >>> refused.kind, refused.status, str(refused)
    ('gone', 410, 'the person has been erased. Hint: use a new key.')
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.kind = str(document.get("type", "")).rsplit(":", 1)[-1]
        self.status = int(document.get("status", 0))
        self.detail = str(document.get("detail", ""))
        self.hint: str | None = document.get("hint")
        self.field: str | None = document.get("field")
        self.requirement: str | None = document.get("requirement")
        super().__init__(self.detail + (f" Hint: {self.hint}" if self.hint else ""))


class Unreachable(Exception):
    """Nobody answered, however often the service was asked.

    A decision may have been made: ask for it again, under its key.

    Examples
    --------
    >>> try:
    ...     Client("http://127.0.0.1:9", "eh_...", tries=1).decision("a-17")
    ... except Unreachable as away:
    ...     print(away)
    http://127.0.0.1:9 did not answer (ConnectionRefusedError) in 1 tries.
    """


@dataclass
class Client:
    """Asks a service. It may be shared by threads: each has a connection of its own.

    Parameters
    ----------
    url : str
        Where the service is: "https://decisions.bank.example", or "http://127.0.0.1:8377".
    key : str
        An API key with the scopes that are needed.
    timeout : float
        Seconds for one answer.
    tries : int
        How often a request is sent that may be sent again.
    context : ssl.SSLContext, optional
        Which certificates are believed; by default those of the system.
    sleep : callable
        Waits for so many seconds.

    Raises
    ------
    ValueError
        If the URL is none of a service.

    Examples
    --------
    >>> Client("ftp://bank", "eh_...")
    Traceback (most recent call last):
        ...
    ValueError: url is 'ftp://bank'; it must be http:// or https:// and a host, without a path.
    """

    url: str
    key: str = field(repr=False)
    timeout: float = 10.0
    tries: int = 5
    context: ssl.SSLContext | None = field(default=None, repr=False)
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    _own: threading.local = field(default_factory=threading.local, repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/"):
            raise ValueError(
                f"url is {self.url!r}; it must be http:// or https:// and a host, without a path."
            )

    # deciding

    def decide(self, application: Application) -> Decision:
        """Decide about one application.

        Parameters
        ----------
        application : Application
            What is asked.

        Returns
        -------
        Decision
            It is durable; the same for every time that it is asked for.

        Raises
        ------
        Problem
            If the service refuses: `kind` is "conflict" for a key that was used with another body,
            "gone" for a person who was erased, "invalid" for what is not what it must be.
        Unreachable
            If nobody answered.
        """
        return Decision(**self._call("POST", "/v1/decisions", _body(application)))

    def decide_many(self, applications: Iterable[Application]) -> list[Decision | Problem]:
        """Decide about many, a thousand in one transaction.

        Parameters
        ----------
        applications : iterable of Application
            What is asked.

        Returns
        -------
        list of Decision or Problem
            In their order; one that is refused does not stop the others.

        Raises
        ------
        Problem
            If a whole request is refused, for instance because something in it is no application.
        """
        asked = [_body(application) for application in applications]
        return self._in_batches("decisions", asked, Decision)

    def decision(self, key: str) -> Decision:
        """Look up the stored answer to an application.

        Parameters
        ----------
        key : str
            That of the application.

        Returns
        -------
        Decision
            What was answered.
        """
        return Decision(**self._call("GET", f"/v1/decisions/{quote(key, safe='')}"))

    # outcomes

    def report(self, key: str, label: Literal[-1, 1]) -> Recorded:
        """Report the outcome of an accepted person.

        Parameters
        ----------
        key : str
            That of the application.
        label : {-1, 1}
            1 good, -1 bad.

        Returns
        -------
        Recorded
            What became of it.
        """
        return Recorded(**self._call("POST", "/v1/outcomes", {"key": key, "label": label}))

    def report_many(self, outcomes: Iterable[Outcome]) -> list[Recorded | Problem]:
        """Report many outcomes, a thousand in one transaction.

        Parameters
        ----------
        outcomes : iterable of Outcome
            What became known.

        Returns
        -------
        list of Recorded or Problem
            In their order.
        """
        reports = [asdict(outcome) for outcome in outcomes]
        return self._in_batches("outcomes", reports, Recorded)

    def report_group(self, key: str, group: Group) -> Recorded:
        """Report a group that became known after the decision.

        Parameters
        ----------
        key : str
            That of the application.
        group : str, bool, int or float
            The group.

        Returns
        -------
        Recorded
            What became of it.
        """
        return Recorded(**self._call("POST", "/v1/groups", {"key": key, "group": group}))

    def override(self, key: str, *, accept: bool, note: str = "") -> Recorded:
        """Report that a human decided; needs the scope "override".

        Parameters
        ----------
        key : str
            That of the application.
        accept : bool
            What the human decided.
        note : str
            Why.

        Returns
        -------
        Recorded
            What became of it.
        """
        body = {"key": key, "accept": accept, "note": note}
        return Recorded(**self._call("POST", "/v1/overrides", body))

    # everything else

    def ready(self) -> bool:
        """Whether the service can decide now; it is asked once.

        Returns
        -------
        bool
            False also if nobody answers.
        """
        try:
            self._call("GET", "/health/ready", tries=1)
        except (Problem, Unreachable):
            return False
        return True

    def get(self, path: str) -> Any:
        """Ask for anything else that can be read: "/v1/certificate?product=loan", "/v1/head".

        Parameters
        ----------
        path : str
            A path of the HTTP interface.

        Returns
        -------
        object
            What the answer says.
        """
        return self._call("GET", path)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send anything else: "/v1/kill", "/v1/erasures".

        It is sent once, because who repeats it may do it twice; but a 429 says that it was not
        done, and is waited for.

        Parameters
        ----------
        path : str
            A path of the HTTP interface.
        body : dict
            Its fields.

        Returns
        -------
        object
            What the answer says.
        """
        return self._call("POST", path, body, repeatable=False)

    def close(self) -> None:
        """Close the connection of this thread; the next request opens another."""
        connection: HTTPConnection | None = getattr(self._own, "connection", None)
        if connection is not None:
            connection.close()
            self._own.connection = None

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _in_batches(
        self, name: str, asked: Sequence[Mapping[str, Any]], kind: Callable[..., Result]
    ) -> list[Result | Problem]:
        """The answers and problems in the order of what was asked, MOST in one request."""
        found: list[Result | Problem] = []
        for start in range(0, len(asked), MOST):
            body = {name: asked[start : start + MOST]}
            answers = self._call("POST", f"/v1/{name}/batch", body)[name]
            found += [Problem(one) if "type" in one else kind(**one) for one in answers]
        return found

    def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        repeatable: bool = True,
        tries: int | None = None,
    ) -> Any:
        """The answer; what is lost or refused for now is asked for again, after longer and longer
        waits.
        """
        # NaN goes out as it is: the service refuses it as any other value, and names the field
        content = None if body is None else json.dumps(body).encode()
        tries = tries or self.tries
        if not repeatable:
            self.close()  # the service may have closed a connection that was idle
        for number in range(1, tries + 1):
            try:
                status, headers, answer = self._exchange(method, path, content)
            except (OSError, HTTPException) as error:
                self.close()
                if not repeatable or number == tries:
                    raise Unreachable(
                        f"{self.url} did not answer ({type(error).__name__}) in {number} tries."
                    ) from error
                self.sleep(_pause(number))
                continue
            again = status in WAITED_FOR if repeatable else status == 429
            if not again or number == tries:
                break
            asked = headers.get("retry-after", "")
            self.sleep(min(float(asked), LONGEST_WAIT) if asked.isdigit() else _pause(number))
        try:
            document = json.loads(answer)
        except ValueError:
            raise Unreachable(f"{self.url} answered {status}, and no JSON.") from None
        if status >= 400:
            raise Problem(document)
        return document

    def _exchange(
        self, method: str, path: str, content: bytes | None
    ) -> tuple[int, dict[str, str], bytes]:
        connection: HTTPConnection | None = getattr(self._own, "connection", None)
        if connection is None:
            parts = urlsplit(self.url)
            host = str(parts.hostname)
            if parts.scheme == "https":
                context = self.context or ssl.create_default_context()
                connection = HTTPSConnection(
                    host, parts.port, timeout=self.timeout, context=context
                )
            else:
                connection = HTTPConnection(host, parts.port, timeout=self.timeout)
            self._own.connection = connection
        headers = {"Authorization": f"Bearer {self.key}"}
        if content is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, path, content, headers)
        response = connection.getresponse()
        named = {name.lower(): value for name, value in response.getheaders()}
        return response.status, named, response.read()


def _body(application: Application) -> dict[str, Any]:
    """Its fields; those that are not given are left out."""
    fields = {
        "key": application.key,
        "person": application.person,
        "product": application.product,
        "features": application.features
        if isinstance(application.features, Mapping)
        else list(application.features),
        "group": application.group,
        "prices": None if application.prices is None else asdict(application.prices),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _pause(number: int) -> float:
    """Seconds after the try of this number: twice as long each time, and never the same for all
    who were disappointed together.
    """
    longest = min(0.1 * 2.0**number, LONGEST_WAIT)
    return longest * (0.5 + random.random() / 2)
