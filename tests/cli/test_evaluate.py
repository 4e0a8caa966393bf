import json

import numpy as np
import pytest

from evenhand.cli.evaluate import demo_log
from evenhand.evaluation import read_log

OLD = "accept,label,group,x\n1,1,a,0\n0,,b,1\n"


def told(result) -> str:
    return " ".join(result.stdout.split())


def test_a_solved_policy_is_judged_on_other_people(run, lending, tmp_path):
    """In sample its gap is .05; on 20,000 others it is larger, and the command does not say
    otherwise.
    """
    assert (
        run(
            "solve",
            lending,
            "--label",
            "repaid",
            "--good",
            "yes",
            "--group",
            "group",
            "--limit",
            "0.05",
            "--out",
            "p.json",
        ).exit_code
        == 0
    )
    result = run(
        "evaluate",
        "demo",
        "--policy",
        "p.json",
        "--limit",
        "0.05",
        "--figure",
        "gap.svg",
        "--json-file",
        "e.json",
    )
    assert result.exit_code == 0
    out = told(result)
    document = json.loads((tmp_path / "e.json").read_text())
    assert out.startswith(document["sentence"])
    assert document["verdict"] == "not shown"
    for words in (
        "If p.json had decided",
        "error rate",
        "FPR a",
        "gap FPR b minus a",
        "≤ 0.05 not shown",
        "Assumptions",
        "without looking at these rows",
    ):
        assert words in out
    assert out.endswith("Figures: e.json Picture: gap.svg")
    assert len(document["course"]["rows"]) == len(document["course"]["gaps"]) > 10
    assert (tmp_path / "gap.svg").read_text().startswith("<?xml")


def test_prices_rates_and_the_verdicts(run):
    dear = told(
        run(
            "evaluate",
            "demo",
            "--policy",
            "accept-all",
            "--price-false-accept",
            3,
            "--rate",
            "fpr",
            "--rate",
            "selection",
            "--limit",
            0,
        )
    )
    assert "Certified with probability 0.95 under the assumptions below" in dear
    assert "gap in FPR and SR" in dear
    assert "cost per person" in dear
    assert "guarantee" not in dear
    assert "unbiased" not in dear


@pytest.mark.parametrize(
    "name", ["log.parquet", "log.csv", "log.jsonl", "log.npz", "log.dsjson", "log.vw"]
)
def test_every_format_gives_the_same_answer(run, tmp_path, name):
    first = run(
        "evaluate",
        "demo",
        "--skip-first",
        18_000,
        "--policy",
        "accept-all",
        "--json-file",
        "a.json",
        "--convert-to",
        name,
    )
    assert first.exit_code == 0
    assert f"Log: {name} (2,000 rows)" in told(first)
    assert run("evaluate", name, "--policy", "accept-all", "--json-file", "b.json").exit_code == 0
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_convert_alone_and_by_another_name(run, tmp_path):
    assert run("evaluate", "demo", "--convert-to", "log.jsonl").exit_code == 0
    (tmp_path / "log.jsonl").rename(tmp_path / "log.txt")
    assert (
        run(
            "evaluate",
            "log.txt",
            "--format",
            "jsonl",
            "--features",
            "income,debt_ratio",
            "--convert-to",
            "two.csv",
        ).exit_code
        == 0
    )
    assert read_log(tmp_path / "two.csv").names == ("income", "debt_ratio")


def test_the_demo_s_log_is_what_it_says():
    log = demo_log(5000)
    assert log.acceptance.min() >= 0.1
    assert abs(log.accept.mean() - log.acceptance.mean()) < 0.03
    assert log.groups == ("a", "b")
    assert np.array_equal(log.acceptance, demo_log(5000).acceptance)


def refused(result, *words):
    assert result.exit_code == 2
    assert result.stdout == ""
    text = " ".join(result.stderr.split())
    for word in words:
        assert word in text
    assert "Traceback" not in text


def test_historic_decisions_are_refused_with_the_reason_and_the_way_out(run, write):
    path = write(OLD, "old.csv")
    refused(
        run("evaluate", path, "--policy", "accept-all"),
        "holds no propensities",
        "nothing can be certified",
        "may have seen what the log does not hold",
        "Hint: record with every decision the probability",
        "evenhand plan",
    )


def test_bad_input_is_named_and_nothing_is_written(run, write, tmp_path):
    path = write("accept,acceptance,label,group,x\n1,0.5,1,a,0\n0,0,,b,1\n1,0.4,0,b,1\n", "log.csv")
    refused(
        run("evaluate", path, "--policy", "accept-all", "--json-file", "e.json"),
        "row 2 had the acceptance probability 0",
        "explore",
    )
    assert not (tmp_path / "e.json").exists()
    refused(run("evaluate", path), "neither --policy nor --convert-to", "accept-all to begin with")
    refused(
        run("evaluate", "demo", "--policy", "missing.json"),
        "neither accept-all nor reject-all nor a file",
    )
    refused(run("evaluate", "missing.csv", "--policy", "accept-all"), "'missing.csv' is no file")
    refused(
        run("evaluate", "demo", "--policy", "accept-all", "--column", "group"), "is not ROLE=COL"
    )
    refused(run("evaluate", "demo", "--policy", "accept-all", "--limit", -1), "the limit is -1")
    refused(run("evaluate", "demo", "--policy", "accept-all", "--delta", 0), "delta is 0")
    refused(
        run("evaluate", "demo", "--policy", "accept-all", "--skip-first", 20_000),
        "at least one row must remain",
    )
    refused(
        run("evaluate", "demo", "--policy", "accept-all", "--groups", "a,z"),
        "group 'z' does not occur",
    )
    refused(
        run("evaluate", "demo", "--policy", "accept-all", "--price-false-accept", -1),
        "prices are finite numbers",
    )
    write("accept,acceptance,label,x\n1,1.5,1,0\n", "over.csv")
    refused(
        run("evaluate", "over.csv", "--convert-to", "over.npz"),
        "row 1 has the acceptance probability 1.5",
    )
    assert not (tmp_path / "over.npz").exists()
