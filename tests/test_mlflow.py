"""Records in a real MLflow, whose runs are files in a folder; without mlflow the names alone."""

import json
import sys
from math import inf

import pytest
from tests.report.records import record

import evenhand.mlflow
from evenhand.errors import EvenhandError
from evenhand.evaluation import gate
from evenhand.evaluation.gates import GateResult
from evenhand.fairness.findings import Finding
from evenhand.hypotheses import policy_from_json
from evenhand.mlflow import metric_name, metrics, own_verdict


def test_names_are_those_that_mlflow_allows_and_differ_where_texts_do():
    texts = ["a/b", "a_2f_b", "a b", "ü", "x<65", "x>65", "a..b"]
    names = [metric_name(text) for text in texts]
    assert len(set(names)) == len(texts)
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-. ") for name in names)


def test_metrics_are_finite_numbers_of_the_record_and_its_findings():
    verdict = GateResult("not shown", (Finding("ratio", 0.1, inf, 0.8, at_least=True),))
    found = metrics(record("certify"), verdict)
    assert found["cost"] == record("certify").cost
    assert found["ratio.low"] == 0.1
    assert "ratio.high" not in found


def test_a_record_that_knows_its_limit_has_a_verdict_of_its_own():
    assert own_verdict(record("measure")) is None
    assert own_verdict(record("plan")) is None
    assert own_verdict(record("impact")) == gate(record("impact"))


def test_without_mlflow_an_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(EvenhandError, match="extra 'mlflow'"):
        evenhand.mlflow.log_record(record("measure"))


@pytest.fixture
def runs(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    yield mlflow
    while mlflow.active_run():
        mlflow.end_run()


@pytest.mark.slow
def test_a_run_holds_policy_certificate_figures_and_page(runs):
    found = record("certify")
    with runs.start_run() as run:
        evenhand.mlflow.log_record(found, asked={"table": "loans.csv"}, columns=["score"])
        evenhand.mlflow.log_record(record("impact"), folder="impact")
    kept = runs.get_run(run.info.run_id)
    assert kept.data.metrics["evenhand.cost"] == pytest.approx(found.cost)
    verdict = gate(found)
    first = verdict.findings[0]
    name = f"evenhand.{metric_name(first.what)}"
    assert kept.data.metrics[f"{name}.low"] == pytest.approx(first.low)
    assert kept.data.metrics[f"{name}.high"] == pytest.approx(first.high)
    assert kept.data.params["evenhand.delta"] == "0.05"
    assert kept.data.params["evenhand.table"] == "loans.csv"
    assert kept.data.tags["evenhand.status"] == verdict.status
    assert kept.data.tags["impact.record"] == "ImpactTable"

    def artifact(path):
        return runs.artifacts.load_text(f"{run.info.artifact_uri}/{path}")

    assert policy_from_json(json.loads(artifact("evenhand/policy.json"))) == found.policy
    certificate = json.loads(artifact("evenhand/certificate.json"))
    assert certificate == found.certificate.to_json()
    assert "<h2>What it rests on</h2>" in artifact("evenhand/page.html")
    assert artifact("evenhand/card.md").startswith("---")
    assert "<svg" in artifact("evenhand/figure.svg")


@pytest.mark.slow
def test_a_record_that_cannot_be_written_leaves_the_run_empty(runs):
    class Broken:
        def to_json(self):
            return {}

    with runs.start_run() as run, pytest.raises(AttributeError):
        evenhand.mlflow.log_record(Broken())
    kept = runs.get_run(run.info.run_id)
    assert kept.data.metrics == {}
    assert runs.MlflowClient().list_artifacts(run.info.run_id) == []
