"""Models of one's own behind the API: a pipeline on text, categories and gaps, from the settings to
a decision that is certified, explained, and the same after a restart. Over a real socket, by the
real command; and what an enemy sends.
"""

import contextlib
import importlib
import json
import os
import pickle
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from service.tests.bank import KEYRING, Bank, Clock
from service.tests.own_pipeline import COLUMNS, FEATURES, people, pipeline
from service.tests.ports import free_port
from tests.without_clocks import PATIENCE, until

from evenhand.cli import main
from evenhand.errors import InvalidInput
from evenhand.hypotheses.models import store_model
from evenhand.storage import state_to_json
from evenhand_service import (
    LedgerKeys,
    Product,
    Settings,
    Trainer,
    create_app,
    load_settings,
    render,
)
from evenhand_service.decider import encoded
from evenhand_service.ledger import Ledger, NotFound, WindowPlan, verify
from evenhand_service.settings import own_model

pytest.importorskip("skops")
pytest.importorskip("pandas")

HERE = Path(__file__).parent
TOML = """[service]
host = "127.0.0.1"
port = {port}
train_every = 3600
rate = 1e6
burst = 1e6

[[product]]
name = "loan"
class = "estimator"
model = "{model}"
limit = 0.3
groups = ["a", "b"]
seed = 3
"""
NAMES = tuple(COLUMNS)


def product(**more):
    settled = {"model": "service.tests.own_pipeline:pipeline", "columns": COLUMNS} | more
    return Product(
        "loan", NAMES, hypotheses="estimator", limit=0.3, groups=("a", "b"), seed=3,
        **settled,
    )  # fmt: skip


class Served:
    """`evenhand serve` in a folder, as a process of its own."""

    def __init__(self, folder, token=None):
        self.port = free_port()
        self.folder, self.token = folder, token
        settings = TOML.format(port=self.port, model="own_pipeline:pipeline") + FEATURES
        (folder / "service.toml").write_text(settings)
        shutil.copy(HERE / "own_pipeline.py", folder)

    def __enter__(self):
        words = [sys.executable, "-m", "evenhand", "serve", "--config", "service.toml"]
        self.log = (self.folder / "log").open("w")
        self.process = subprocess.Popen(
            words, cwd=self.folder, stdout=self.log, stderr=self.log, env=os.environ
        )
        until(
            lambda: "Stop with" in self.said() or self.process.poll() is not None, "the first words"
        )
        assert self.process.poll() is None, self.said()
        until(self.answers, "the start of the service")
        if self.token is None:
            self.token = next(self.folder.rglob("first-key")).read_text().strip()
        return self

    def said(self):
        return (self.folder / "log").read_text()

    def answers(self):
        with contextlib.suppress(OSError):
            return self.call("GET", "/health")[0] == 200
        return False

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(PATIENCE)
        self.log.close()

    def call(self, method, path, body=None):
        asked = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refusal:
            return refusal.code, json.load(refusal)

    def live(self, number, seed):
        """People apply; the outcomes of those who are accepted are told. The answers."""
        came, answers = people(number, seed), []
        for start in range(0, number, 500):
            asked = [
                application(f"k{seed}-{start + n}", features, group)
                for n, (_, features, group) in enumerate(came[start : start + 500])
            ]
            answers += self.call("POST", "/v1/decisions/batch", {"decisions": asked})[1][
                "decisions"
            ]
        told = [
            {"key": answer["key"], "label": 1 if good else -1}
            for answer, (good, _, _) in zip(answers, came, strict=True)
            if answer["accept"]
        ]
        for start in range(0, len(told), 1000):
            outcomes = {"outcomes": told[start : start + 1000]}
            assert self.call("POST", "/v1/outcomes/batch", outcomes)[0] == 200
        return answers

    def train(self):
        code, answer = self.call("POST", "/v1/train", {"product": "loan", "by": "test"})
        assert code == 200, answer
        return answer


def application(key, features, group=None):
    return {"key": key, "person": key, "product": "loan", "features": features, "group": group}


@pytest.mark.slow
def test_a_pipeline_is_served_certified_explained_and_the_same_after_a_restart(tmp_path):
    first, second = tmp_path / "one", tmp_path / "two"
    first.mkdir()
    with Served(first) as bank:
        assert "the model is own_pipeline:pipeline, version" in bank.said()
        bank.live(1000, seed=1)
        bank.train()
        bank.live(500, seed=2)
        in_force = bank.train()
        token = bank.token
        answers = bank.live(300, seed=3)
        certificate = bank.call("GET", "/v1/certificate?product=loan")[1]
        assert certificate["epoch"] == in_force["epoch"] == 3
        assert len(certificate["certificate"]["models"]) >= 1
        assert "history (text)" in certificate["text"]
        assert certificate["certificate"]["schema_sha256"] in certificate["text"]
        refused = [answer for answer in answers if not answer["accept"]]
        assert 20 < len(refused) < 280
        told = [
            bank.call("GET", f"/v1/decisions/{one['key']}/explanation")[1] for one in refused[:40]
        ]
        blamed = {reason["feature"] for one in told for reason in one["reasons"]}
        assert {"history", "city", "income"} >= blamed
        assert "history" in blamed
        words = [part["words"] for part in told[0]["parts"]]
        (model, *_) = certificate["certificate"]["models"]
        assert any(f"(model {model[:12]})" in one for one in words)
        late = [one for one in told if "What spoke most against it: history" in one["sentence"]]
        assert late
        for one in late:  # the true one: nobody is refused for having paid
            (said,) = [reason for reason in one["reasons"] if reason["feature"] == "history"]
            assert (said["value"], said["share"] < 0) == ("late late", True)
        changes = [one["change"] for one in told if one["change"]]
        assert all("history" not in change["features"] for change in changes)
        towns = [change for change in changes if "city" in change["features"]]
        assert towns
        assert all(change["values"][change["features"].index("city")] != "Lima" for change in towns)
    shutil.copytree(first, second)
    after = []
    for folder in (first, second):
        with Served(folder, token) as again:
            answers = again.live(200, seed=4)
        # a lease of the process before may be held, so the clock is turned by hand
        with Ledger.open(
            folder / "ledger.sqlite", keyring=type(KEYRING).load(folder / "keyring.json"),
            clock=lambda: 4e9,
        ) as ledger:  # fmt: skip
            (loan,) = load_settings(folder / "service.toml").products
            policy = Trainer(ledger, loan, "another").close().id
            issued = ledger.certificates("loan")[-1].document
        after.append((policy, issued, [(a["accept"], a["propensity"]) for a in answers]))
    assert after[0] == after[1]
    with Ledger.open(
        second / "ledger.sqlite", keyring=type(KEYRING).load(second / "keyring.json"),
        clock=lambda: 4e9,
    ) as ledger:  # fmt: skip
        assert verify(ledger, deep=True).problems == ()
        documents = [p.document for p in ledger.policies("loan")]
        models = ledger.models(*documents)
        assert models
        assert '"data"' not in json.dumps(documents)


class Own(Bank):
    """The bank of the other tests with one product: the pipeline."""

    def __init__(self, path, product, clock=None):
        self.clock = clock or Clock()
        self.ledger = Ledger.open(
            path, keyring=KEYRING, clock=self.clock, windows=WindowPlan(30 * 86400.0), render=render
        )
        self.product, self.keys = product, LedgerKeys(self.ledger)
        settings = Settings(products=(product,), rate=1e6, burst=1e6, train_every=3600.0)
        self.app = create_app(self.ledger, settings, self.keys)
        self._begin()

    def _begin(self):
        from starlette.testclient import TestClient

        self.service = self.app.app.state.service
        self.all = self.keys.add(["decide", "observe", "audit", "admin"], days=3650)
        self._stack = contextlib.ExitStack()
        client = TestClient(self.app, base_url="http://127.0.0.1", raise_server_exceptions=False)
        self.client = self._stack.enter_context(client)


@pytest.fixture
def own(tmp_path):
    made = Own(tmp_path / "ledger.sqlite", product())
    yield made
    made.close()


GOOD = {"income": 51.5, "city": "Oslo", "history": "paid steady", "member": True}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"city": "Paris"}, "feature 'city' is 'Paris'; it must be one of 'Oslo', 'Rome', 'Lima'"),
        ({"city": None}, "feature 'city' is missing; the schema allows no missing value there"),
        ({"city": 1}, "feature 'city' is 1; it must be one of"),
        ({"history": 7}, "feature 'history' is 7; it must be a text"),
        ({"history": None}, "feature 'history' is missing"),
        ({"history": "x" * 61}, "must be a text of at most 60 bytes, and this one has 61"),
        ({"history": "x" * 20_000}, "feature 'history' has 20000 characters"),
        ({"history": "a\0b"}, "a text without the character NUL"),
        ({"income": "51"}, "feature 'income' is '51'; it must be a number"),
        ({"income": True}, "feature 'income' is True; it must be a number"),
        ({"income": float("nan")}, "feature 'income' must be a finite number"),
        ({"income": 1e301}, "feature 'income' must be a finite number"),
        ({"income": -(2.0**60)}, "not the code of a missing value"),
        ({"income": [1]}, "feature 'income' must be a number, true, false, a text or null"),
        ({"member": 1}, "feature 'member' is 1; it must be True or False"),
        ({"member": "yes"}, "feature 'member' is 'yes'; it must be True or False"),
        ({"incme": 3}, "it has the unknown 'incme'"),
    ],
)
def test_a_refusal_names_the_feature_the_value_the_law_and_the_way_out(own, change, words):
    rows = own.ledger.head().seq
    answer = own.post("/v1/decisions", application("k", {**GOOD, **change}))
    assert answer.status_code in (400, 422), answer.text
    if answer.status_code == 422:  # NaN is no JSON, and refused before that
        told = answer.json()
        assert words in told["detail"]
        assert told["hint"]
    assert own.ledger.head().seq == rows


def test_a_feature_that_is_left_out_is_named(own):
    lacking = {name: value for name, value in GOOD.items() if name != "city"}
    told = own.post("/v1/decisions", application("k", lacking)).json()
    assert "it lacks 'city'" in told["detail"]
    told = own.post("/v1/decisions", application("k", [1.0])).json()
    assert "features has 1 values; this product has 4 features" in told["detail"]


def test_one_person_who_is_refused_does_not_stop_the_others(own):
    asked = [application("a", GOOD), application("b", {**GOOD, "city": "Paris"})]
    answers = own.post("/v1/decisions/batch", {"decisions": asked}).json()["decisions"]
    assert answers[0]["accept"] is True
    assert "Paris" in answers[1]["detail"]
    listed = own.post("/v1/decisions", application("c", list(GOOD.values())))
    assert listed.status_code == 200
    same = own.post("/v1/decisions", application("c", dict(reversed(GOOD.items()))))
    assert same.json() == listed.json()  # by name, in another order: the same application


def lived(own, seed=1, number=1000):
    came = people(number, seed)
    asked = [application(f"k{seed}-{n}", f, g) for n, (_, f, g) in enumerate(came)]
    answers = []
    for start in range(0, number, 500):
        part = {"decisions": asked[start : start + 500]}
        answers += own.post("/v1/decisions/batch", part).json()["decisions"]
    told = [
        {"key": a["key"], "label": 1 if good else -1}
        for a, (good, _, _) in zip(answers, came, strict=True)
        if a["accept"]
    ]
    own.post("/v1/outcomes/batch", {"outcomes": told[:1000]})
    own.clock.now += 100
    own.service.trainer(own.product).close()
    own.service.decider.refresh(own.product)


def test_a_new_trainer_continues_bit_for_bit_and_forgets_who_is_erased(own):
    lived(own)
    lived(own, seed=2, number=400)
    running, fresh = own.service.trainer(own.product), Trainer(own.ledger, own.product, "fresh")
    fresh.catch_up()
    states = [state_to_json(t.learner.state, t.learner.hypotheses) for t in (fresh, running)]
    assert states[0] == states[1]
    assert fresh.learner.policy == running.learner.policy
    own.post("/v1/erasures", {"person": "k2-3", "by": "officer"})
    assert own.get("/v1/decisions/k2-3/explanation").status_code == 410
    lived(own, seed=3, number=300)
    assert verify(own.ledger, deep=True).problems == ()


MODELS = """from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
{note}
model = {model}
"""
POOR = (
    'make_pipeline(ColumnTransformer([("one", "passthrough", ["income"])]), LogisticRegression())'
)
"""It looks at one feature, and the other one says more."""


def edited(folder, model, note=""):
    """The product with a module beside the settings, read anew as by a process that starts."""
    (folder / "my_rolled_out_model.py").write_text(MODELS.format(model=model, note=note))
    sys.modules.pop("my_rolled_out_model", None)
    own_model.cache_clear()
    importlib.invalidate_caches()
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    return Product(
        "loan", ("income", "age"), hypotheses="estimator", limit=0.3, groups=("a", "b"), seed=3,
        model="my_rolled_out_model:model",
    )  # fmt: skip


def lived_by_numbers(own, seed, number=700):
    rng = np.random.default_rng(seed)
    good = rng.random(number) < 0.5
    asked = [
        application(
            f"n{seed}-{n}", [float(rng.normal(1.5 * g)), float(rng.normal(-3.0 * g))], "ab"[n % 2]
        )
        for n, g in enumerate(good)
    ]
    answers = own.post("/v1/decisions/batch", {"decisions": asked}).json()["decisions"]
    told = [
        {"key": a["key"], "label": 1 if g else -1}
        for a, g in zip(answers, good, strict=True)
        if a["accept"]
    ]
    own.post("/v1/outcomes/batch", {"outcomes": told})
    own.clock.now += 100
    own.service.trainer(own.product).close()
    own.service.decider.refresh(own.product)


@pytest.mark.thorough
def test_a_new_model_is_rolled_out_by_a_restart_and_says_so(tmp_path, monkeypatch, caplog):
    """Same ledger, same certification run: what was fitted keeps the name of the version that
    fitted it, and the log says when the next one takes over.
    """
    monkeypatch.syspath_prepend(tmp_path)
    caplog.set_level("INFO", logger="evenhand_service")
    first = Own(tmp_path / "ledger.sqlite", edited(tmp_path, POOR))
    for seed in range(3):
        lived_by_numbers(first, seed)
    old = first.product.model_version["id"]
    assert first.service.decider.active(first.product).learned_weight > 0
    assert f"the model is my_rolled_out_model:model, version {old}" in caplog.text
    assert "the next closing fits" not in caplog.text
    first.close()

    noted = edited(tmp_path, POOR, note="# the same model in another file")
    better = edited(tmp_path, "GaussianNB()")
    new = better.model_version["id"]
    assert len({old, new, noted.model_version["id"]}) == 3
    caplog.clear()
    second = Own(tmp_path / "ledger.sqlite", better, clock=Clock(first.clock.now))
    assert (
        f"with the version {old} of the model; the next closing fits the version {new}"
        in caplog.text
    )
    before = second.service.decider.active(better)
    assert before.learned_weight > 0  # what was certified goes on deciding
    for seed in range(3, 7):
        lived_by_numbers(second, seed)
    assert f"is the first that was planned with the model {new}, after {old}" in caplog.text
    told = second.get("/v1/policies?product=loan").json()["policies"]
    lineage = [one for one in told if one["lineage"]]
    assert [one["info"]["model"]["id"] for one in lineage] == [old] * 4 + [new] * 4
    assert lineage[-1]["info"]["model"] == better.model_version
    assert {m["fitted_by"] for one in lineage[:4] for m in one["models"]} == {old}
    assert {m["fitted_by"] for m in lineage[-1]["models"]} >= {new}
    # what was fitted keeps the name of the version that fitted it
    fitted = [item for one in lineage for item in one["info"]["fitted_by"].items()]
    assert len(dict(fitted)) == len(set(fitted))
    issued = second.ledger.certificates("loan")
    assert {row.document["status"] for row in issued} == {"certified"}
    assert verify(second.ledger, deep=True).problems == ()
    second.close()
    edited(tmp_path, POOR)  # nothing of it stays in this process
    sys.modules.pop("my_rolled_out_model")


def test_the_board_and_the_pack_show_a_product_with_a_model(own, tmp_path):
    lived(own)
    lived(own, seed=2, number=300)
    cookie = own.client.post(
        "/dashboard/login", data={"key": own.all}, follow_redirects=False
    ).headers["set-cookie"]
    for page in ("/dashboard", "/dashboard/decisions", "/dashboard/decision?key=k2-3"):
        answer = own.client.get(page, headers={"Cookie": cookie.split(";")[0]})
        assert answer.status_code == 200, answer.text
    assert "late late" in answer.text or "paid steady" in answer.text or "Accepted" in answer.text
    told = own.get("/v1/policies?product=loan").json()
    assert any("fitted Pipeline" in policy["words"] for policy in told["policies"])


def test_only_what_was_agreed_is_loaded_as_a_model(tmp_path):
    """A skops file is read, a pickle never, and a type that nobody trusts not either."""
    skops = tmp_path / "model.skops"
    skops.write_bytes(store_model(pipeline()).data)
    made = product(model=str(skops))
    moved = tmp_path / "elsewhere.skops"
    shutil.copy(skops, moved)
    assert (
        product(model=str(moved)).model_version["source_sha256"]
        == (
            made.model_version["source_sha256"]  # it is named by its bytes
        )
    )
    other = tmp_path / "other.skops"
    other.write_bytes(store_model(pipeline().set_params(logisticregression__C=2.0)).data)
    newer = product(model=str(other))
    assert newer.digest == made.digest  # a model is no part of the guarantee
    assert newer.model_version["id"] != made.model_version["id"]
    marker = tmp_path / "ran"
    evil = tmp_path / "model.pkl"

    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(marker),)

    evil.write_bytes(pickle.dumps(Evil()))
    for name in ("model.pkl", "renamed.skops"):
        shutil.copy(evil, tmp_path / name) if name != "model.pkl" else None
        with pytest.raises(InvalidInput, match=r"skops.*pickle"):
            product(model=str(tmp_path / name))
    assert not marker.exists()
    with pytest.raises(InvalidInput, match="read"):
        product(model=str(tmp_path / "missing.skops"))
    with pytest.raises(InvalidInput, match=r"imported.*beside"):
        product(model="no_such_module:model")
    with pytest.raises(InvalidInput, match="imported"):
        product(model="service.tests.own_pipeline:nothing")
    strange = tmp_path / "strange.skops"
    strange.write_bytes(store_model(Strange()).data)
    with pytest.raises(InvalidInput, match=r"service\.tests\.test_own_models\.Strange"):
        product(model=str(strange))
    product(model=str(strange), trusted=("service.tests.test_own_models.Strange",))


class Strange:
    """A classifier of nobody's."""

    def fit(self, X, y, sample_weight=None):
        return self

    def predict(self, X):
        return [1] * len(X)

    def get_params(self, deep=True):
        return {}

    def set_params(self, **_):
        return self


def test_the_command_that_verifies_trusts_the_types_of_the_settings(tmp_path):
    """`--deep` asks each policy again, so it has to load the models; without the settings' word for
    their types (the control) it says that it cannot.
    """
    shutil.copy(HERE / "own_pipeline.py", tmp_path)
    text = TOML.format(port=0, model="own_pipeline:of_own_types")
    (tmp_path / "service.toml").write_text(
        f'{text}trusted = ["own_pipeline.OwnRegression"]\n{FEATURES}'
    )
    KEYRING.save(tmp_path / "keyring.json")
    (loan,) = load_settings(tmp_path / "service.toml").products
    made = Own(tmp_path / "ledger.sqlite", loan)
    lived(made, number=500)
    lived(made, seed=2, number=20)
    assert made.service.decider.active(loan).learned_weight > 0
    assert "its policy cannot be loaded" in verify(made.ledger, deep=True).problems[0].what
    made.close()
    words = ["audit", "verify", "--deep", "--config", str(tmp_path / "service.toml")]
    found = CliRunner().invoke(main, words)
    assert (found.exit_code, "0 problems" in found.output) == (0, True), found.output


def test_settings_of_a_model_and_its_columns(tmp_path):
    shutil.copy(HERE / "own_pipeline.py", tmp_path)
    file = tmp_path / "service.toml"
    file.write_text(TOML.format(port=0, model="own_pipeline:pipeline") + FEATURES)
    (read,) = load_settings(file).products
    assert read.features == NAMES
    assert read.schema == product().schema
    assert read.width == 13
    plain = Product("loan", ("score",))
    assert plain.guarantee.keys().isdisjoint({"columns", "model", "trusted"})
    for more, words in {
        ("columns", "nobody"): "'nobody'",
        ("columns", "income", "kind", "date"): "'income' is 'date'",
        ("columns", "income", "colour", 3): "colour",
    }.items():
        wrong = {more[1]: dict([more[2:]]) if more[2:] else {}}
        with pytest.raises(InvalidInput, match=words):
            product(columns=COLUMNS | wrong)
    with pytest.raises(InvalidInput, match="estimator"):
        Product("loan", ("score",), model="a:b")
    with pytest.raises(InvalidInput, match="stumps"):
        Product("loan", NAMES, columns=COLUMNS)  # stumps look at plain numbers
    flag = Product("loan", ("score", "member"), columns={"member": {"kind": "boolean"}})
    assert encoded(flag, {"member": True, "score": 2.0}) == [2.0, 1.0]


def test_a_model_that_is_gone_from_the_ledger_does_not_decide(own, monkeypatch):
    """The hash is looked at whenever a policy is loaded; else the fallback decides."""
    from evenhand_service import decider

    lived(own)
    lived(own, seed=2, number=300)
    assert own.service.decider.active(own.product).learned_weight > 0
    monkeypatch.setattr(decider, "_MIXTURES", {})

    def gone(self, *documents):
        if "sha256" in json.dumps(documents):
            raise NotFound("no such model")
        return {}

    monkeypatch.setattr(Ledger, "models", gone)
    assert own.service.decider.refresh(own.product).learned_weight == 0
