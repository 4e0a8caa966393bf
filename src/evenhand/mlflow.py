"""Records in MLflow: the policy, the certificate, the figures and the page of what was found.

`log_record` writes into the active run (or begins one, as MLflow's own functions do). Numbers are
metrics, so that runs can be compared by them; everything else is an artifact. It needs the extra
`mlflow`.
"""

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evenhand.errors import InvalidInput, install_hint
from evenhand.evaluation.gates import GateResult, gate
from evenhand.report.contents import contents
from evenhand.report.drawing import draw_panels, save_figure
from evenhand.report.handover import write_report
from evenhand.shown import imported

FOLDER = "evenhand"
"""The folder of the artifacts in a run, unless another one is named."""
NUMBERS = (
    "people",
    "accepted",
    "selected",
    "outcomes",
    "cost",
    "constant_cost",
    "learned_weight",
    "fitted_on",
    "certified_on",
    "saving_share",
)
"""Numbers of records that become metrics."""
SETTINGS = ("limit", "least_ratio", "delta", "horizon", "candidate")
"""Settings of records that become parameters."""


def log_record(
    record: Any,
    *,
    verdict: GateResult | None = None,
    title: str | None = None,
    asked: Mapping[str, str] | None = None,
    columns: Sequence[str] | None = None,
    folder: str = FOLDER,
) -> None:
    """Log a record in the active run of MLflow.

    Metrics are the numbers of the record and the two ends of every finding; parameters its settings
    and what was asked; artifacts are record.json, policy.json and certificate.json where the record
    has them, page.html, card.md and figure.svg.

    Parameters
    ----------
    record : object
        What `measure`, `certify`, `impact`, `plan`, `evaluate` or another function returned.
    verdict : GateResult, optional
        What `evenhand.evaluation.gate` said; by default that of a record that knows what is
        allowed.
    title : str, optional
        The title of the page.
    asked : mapping of str to str, optional
        What was asked; stands on the page and among the parameters.
    columns : sequence of str, optional
        The names of the columns that rules look at.
    folder : str, default "evenhand"
        The folder of the artifacts, and the prefix of metrics and parameters: another one for a
        second record in the same run.

    Raises
    ------
    EvenhandError
        If mlflow, matplotlib or jinja2 is not installed.

    Examples
    --------
    Inside a run::

        import evenhand as eh
        import evenhand.mlflow
        import mlflow

        with mlflow.start_run():
            evenhand.mlflow.log_record(eh.certify(eh.Stumps(), people, limit=0.05))
    """
    mlflow = imported("mlflow", "logging a record in MLflow", install_hint("mlflow"))
    if verdict is None:
        verdict = own_verdict(record)
    with TemporaryDirectory() as temporary:
        files = Path(temporary)
        # Everything is made before anything is logged: a run gets all of it or nothing.
        for name, document in documents(record).items():
            (files / name).write_text(json.dumps(document, indent=1) + "\n")
        for name in ("page.html", "card.md"):
            write_report(
                record, files / name, title=title, asked=asked, verdict=verdict, columns=columns
            )
        drawn = contents(record, columns).drawn
        if drawn is not None:
            figure = draw_panels(drawn.panels, min(len(drawn.panels), 3), drawn.size)
            save_figure(figure, files / "figure.svg")
        found = metrics(record, verdict)
        mlflow.log_artifacts(str(files), artifact_path=folder)
    settings = {
        name: getattr(record, name) for name in SETTINGS if getattr(record, name, None) is not None
    }
    given = {**settings, **(asked or {})}
    mlflow.log_params({f"{folder}.{metric_name(name)}": value for name, value in given.items()})
    mlflow.log_metrics({f"{folder}.{name}": value for name, value in found.items()})
    tags = {f"{folder}.record": type(record).__name__}
    if verdict is not None:
        tags[f"{folder}.status"] = verdict.status
    mlflow.set_tags(tags)


def own_verdict(record: Any) -> GateResult | None:
    """The verdict of a record that knows what is allowed; None if it knows no limit."""
    if not hasattr(record, "findings"):
        return None
    try:
        found = gate(record)
    except InvalidInput:
        return None
    return found if found.findings else None


def documents(record: Any) -> dict[str, Any]:
    """The files of a record, by name: its figures, its policy and its certificate."""
    whole = record.to_json()
    parts = {f"{name}.json": whole.get(name) for name in ("policy", "certificate")}
    return {"record.json": whole, **{name: one for name, one in parts.items() if one is not None}}


def metrics(record: Any, verdict: GateResult | None) -> dict[str, float]:
    """The numbers of a record and the two ends of every finding, by names that MLflow allows."""
    found = {}
    for name in NUMBERS:
        value = getattr(record, name, None)
        if isinstance(value, int | float):
            found[name] = float(value)
    for one in () if verdict is None else verdict.findings:
        found[f"{metric_name(one.what)}.low"] = one.low
        found[f"{metric_name(one.what)}.high"] = one.high
    return {name: value for name, value in found.items() if isfinite(value)}


def metric_name(text: str) -> str:
    """A name that MLflow allows; two different texts never get the same.

    >>> metric_name("gap FPR b minus a"), metric_name("ratio SR <65 / all")
    ('gap FPR b minus a', 'ratio SR _3c_65 _2f_ all')
    """

    def written(mark: str) -> str:
        plain = mark.isascii() and (mark.isalnum() or mark in "-. ")
        return mark if plain else f"_{ord(mark):x}_"

    return "".join(map(written, text))
