"""Every route of the API with the scope that it needs; and what must not pass: other scopes,
other sites, scripts, SQL.
"""

from service.tests.bank import application

from evenhand_service import SCOPES

OPERATION = {"product": "loan", "by": "op"}
LAUNCH = {
    "product": "loan",
    "group_shares": {"north": 0.6, "south": 0.4},
    "bad_rates": {"north": 0.3, "south": 0.4},
    "auc": 0.8,
    "horizon": 1000,
}
ROUTES = {
    ("POST", "/v1/decisions"): ("decide", application()),
    ("POST", "/v1/decisions/batch"): ("decide", {"decisions": [application("b")]}),
    ("GET", "/v1/decisions/k0"): ("decide", None),
    ("POST", "/v1/outcomes"): ("observe", {"key": "k0", "label": 1}),
    ("POST", "/v1/outcomes/batch"): ("observe", {"outcomes": [{"key": "k0", "label": 1}]}),
    ("POST", "/v1/overrides"): ("override", {"key": "k0", "accept": False, "by": "x"}),
    ("POST", "/v1/groups"): ("observe", {"key": "k0", "group": "north"}),
    ("POST", "/v1/settlements"): ("admin", {"key": "k0", "label": 1, "by": "x"}),
    ("GET", "/v1/certificate?product=loan"): ("audit", None),
    ("GET", "/v1/policies?product=loan"): ("audit", None),
    ("GET", "/v1/plan?product=loan"): ("audit", None),
    ("POST", "/v1/plan"): ("audit", LAUNCH),
    ("GET", "/v1/decisions/k0/explanation"): ("audit", None),
    ("GET", "/v1/windows"): ("audit", None),
    ("GET", "/v1/head"): ("audit", None),
    ("GET", "/metrics"): ("audit", None),
    ("POST", "/v1/kill"): ("admin", OPERATION),
    ("POST", "/v1/revive"): ("admin", OPERATION),
    ("POST", "/v1/shadow"): ("admin", OPERATION),
    ("POST", "/v1/live"): ("admin", OPERATION),
    ("POST", "/v1/rollback"): ("admin", OPERATION),
    ("POST", "/v1/train"): ("admin", OPERATION),
    ("POST", "/v1/erasures"): ("admin", {"person": "nobody", "by": "x"}),
    ("POST", "/v1/gap"): ("admin", {"by": "x", "note": "looked"}),
    ("POST", "/v1/keys"): ("admin", {"scopes": ["audit"]}),
    ("POST", "/v1/keys/abc/rotate"): ("admin", {}),
    ("GET", "/v1/keys"): ("admin", None),
    ("DELETE", "/v1/keys/abc"): ("admin", None),
    ("POST", "/v1/windows/w1/reveal"): ("admin", None),
}
PUBLIC = {("GET", "/health"), ("GET", "/health/live"), ("GET", "/health/ready")}


def routes_of(bank):
    """(method, path) of every route that the OpenAPI document lists."""
    paths = bank.client.get("/openapi.json").json()["paths"]
    return {(method.upper(), path) for path, methods in paths.items() for method in methods}


def template(path):
    """The path as OpenAPI writes it."""
    plain = path.split("?")[0]
    return plain.replace("k0", "{key}").replace("/abc", "/{key_id}").replace("/w1/", "/{name}/")


def scope_matrix(bank):
    """(method, path, who, status) of every request that passed although it should not have, or did
    not although it should have.
    """
    bank.post("/v1/decisions", application("k0"))
    wrong, tried = [], 0
    for (method, path), (needed, body) in ROUTES.items():
        for scope in SCOPES:
            status = bank.call(method, path, body, bank.tokens[scope]).status_code
            tried += 1
            wrong += [(method, path, scope, status)] if (status == 403) != (scope != needed) else []
        for who, status in strangers(bank, method, path, body):
            tried += 1
            wrong += [(method, path, who, status)] if status != 401 else []
    return wrong, tried


def strangers(bank, method, path, body):
    """Without a key, with a wrong one, with one in the wrong place, with a session of the dashboard
    alone.
    """
    token = bank.all
    yield "nobody", bank.client.request(method, path, json=body).status_code
    yield "wrong key", bank.call(method, path, body, "eh_wrong").status_code
    yield "a prefix", bank.call(method, path, body, token[:-1]).status_code
    yield (
        "basic",
        bank.client.request(
            method, path, json=body, headers={"Authorization": f"Basic {token}"}
        ).status_code,
    )
    yield (
        "cookie",
        bank.client.request(
            method, path, json=body, headers={"Cookie": f"evenhand_session={token}"}
        ).status_code,
    )
    joint = "&" if "?" in path else "?"
    yield "query", bank.client.request(method, f"{path}{joint}token={token}", json=body).status_code


def session(bank, token=None):
    """The cookie of somebody who has logged in to the dashboard."""
    found = bank.client.post(
        "/dashboard/login", data={"key": token or bank.all}, follow_redirects=False
    )
    return found.headers["set-cookie"].split(";")[0]


def from_other_sites(bank):
    """Forms and scripts of another site, with the victim's cookie: which of them changed something,
    or logged somebody in.
    """
    cookie, before = session(bank), bank.ledger.head().seq
    evil = [
        {"Origin": "http://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1.evil.example"},
    ]
    passed, tried = [], 0
    for headers in evil:
        for path in ("/dashboard/login", "/dashboard/logout"):
            found = bank.client.post(
                path,
                data={"key": bank.all},
                headers={**headers, "Cookie": cookie},
                follow_redirects=False,
            )
            tried += 1
            passed += [(path, found.status_code)] if found.status_code != 403 else []
        for (method, path), (_, body) in ROUTES.items():
            form = {**headers, "Cookie": cookie, "Content-Type": "text/plain"}
            found = bank.client.request(method, path, json=body, headers=form)
            tried += 1
            passed += [(path, found.status_code)] if found.status_code != 401 else []
    if bank.ledger.head().seq != before:
        passed.append(("rows were written", 200))
    return passed, tried


SCRIPTS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'-alert(1)-'",
    "{{7*7}}${7*7}",
    "</title><svg onload=alert(1)>",
    "javascript:alert(1)//",
)


def stored_scripts(bank):
    """Group names, keys, notes and names of operators that are HTML: which of them come back as
    they are.
    """
    passed, raw = (
        [],
        (
            "<script>alert",
            "<img src=x",
            "<svg onload",
            "49${49}",
            'href="javascript:alert',
            "href='javascript",
        ),
    )
    for number, text in enumerate(SCRIPTS):
        people = [application(f"x{number}-{i}", features=[0.9], group=text) for i in range(12)]
        people.append(application(text, features=[0.9], group=text))
        bank.post("/v1/decisions/batch", {"decisions": people})
        bank.post("/v1/shadow", {"product": "loan", "by": text, "note": text})
        bank.post("/v1/live", {"product": "loan", "by": text, "note": text})
    headers, pages = {"Cookie": session(bank)}, ["/dashboard", "/dashboard/live"]
    pages += [f"/dashboard/decision?key=x{number}-1" for number in range(len(SCRIPTS))]
    for text in SCRIPTS:
        found = bank.client.get("/dashboard/decision", params={"key": text}, headers=headers)
        passed += [(text, mark) for mark in raw if mark in found.text.lower()]
        found = bank.client.get("/dashboard", params={"product": text}, headers=headers)
        passed += [(text, mark) for mark in raw if mark in found.text.lower()]
    for path in pages:
        found = bank.client.get(path, headers=headers)
        assert found.status_code == 200, path
        passed += [(path, mark) for mark in raw if mark in found.text.lower()]
        policy = found.headers["content-security-policy"]
        passed += (
            [(path, policy)] if "script-src 'self'" not in policy or "unsafe" in policy else []
        )
    if "&lt;script&gt;" not in bank.client.get("/dashboard", headers=headers).text:
        passed.append(("/dashboard", "the group is not shown as text"))
    return passed, len(pages) + 2 * len(SCRIPTS)


SQL = (
    "'; DROP TABLE decisions; --",
    "' OR '1'='1",
    '" OR ""="',
    "1); DELETE FROM outcomes; --",
    "' UNION SELECT key FROM people --",
    "%' OR 1=1 /*",
    ":among",
    "?1",
    "\\'; SELECT pg_sleep(9); --",
)


def sql_payloads(bank):
    """SQL in every name that reaches the database: which of them did more than to be a text."""
    passed, before = [], bank.ledger.counts("loan").decisions
    for number, text in enumerate(SQL):
        made = bank.post("/v1/decisions", application(text, person=text, group=text))
        passed += (
            [(text, made.status_code)]
            if made.status_code != 200 or made.json()["key"] != text
            else []
        )
        passed += (
            [(text, "outcome")]
            if bank.post("/v1/outcomes", {"key": text + "x", "label": 1}).status_code != 404
            else []
        )
        for path in ("/v1/certificate", "/v1/policies", "/v1/plan"):
            found = bank.client.get(
                path, params={"product": text}, headers={"Authorization": f"Bearer {bank.all}"}
            )
            passed += [(text, path)] if found.status_code != 404 else []
        passed += (
            [(text, "key")]
            if bank.call("DELETE", f"/v1/keys/{number}' OR ''='").status_code != 404
            else []
        )
        passed += (
            [(text, "erasure")]
            if bank.post("/v1/erasures", {"person": text + "x", "by": text}).status_code != 404
            else []
        )
        passed += [(text, "login")] if bank.keys.find(text) is not None else []
    if bank.ledger.counts("loan").decisions != before + len(SQL):
        passed.append(("rows", "lost"))
    return passed, 8 * len(SQL)
