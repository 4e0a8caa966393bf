"""Both files give back what was written, bit for bit, and frames are read as files are."""

from dataclasses import replace

import numpy as np
import pytest
from tests.evaluation.worlds import logged, same

from evenhand.errors import InvalidInput
from evenhand.evaluation import DecisionLog, read_log, write_log

FILES = ("log.parquet", "log.csv")


@pytest.fixture
def log():
    """Everything that is awkward: open labels, unknown groups, odd names, blanks, ids with marks, p
    that 1 - (1 - p) does not give back.
    """
    found, _ = logged(300, 7, open_share=0.1)
    group = np.where(
        np.arange(300) % 11 == 0, None, np.where(found.group == "a", "north & south", "b:|'x")
    )
    ids = [f"k {i}/ä|:&=" for i in range(300)]
    p = found.acceptance.copy()
    p[~found.accept] = np.where(np.arange((~found.accept).sum()) % 2, 0.1, p[~found.accept])
    features = found.features.copy()
    features[0], features[1] = 0.0, 1e-300
    names = ("score", "debt ratio: all|x", "größe")
    return DecisionLog.of(features, found.accept, p, found.label, group=group, names=names, id=ids)


@pytest.mark.parametrize("name", FILES)
def test_round_trip(log, tmp_path, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    write_log(log, tmp_path / name)
    assert same(read_log(tmp_path / name), log)
    assert (
        len({1 - (1 - p) == p for p in log.acceptance}) == 2
    )  # the log does hold such propensities


@pytest.mark.parametrize("name", FILES)
def test_a_plain_log_round_trips_too(tmp_path, name):
    plain, _ = logged(50, 1)
    write_log(plain, tmp_path / name)
    assert same(read_log(tmp_path / name), plain)


@pytest.mark.parametrize("name", FILES)
def test_rounds_and_times_round_trip(tmp_path, name):
    plain, _ = logged(50, 1)
    rounds = np.arange(50.0) + 7
    rounds[4] = np.nan
    timed = replace(plain, round=rounds, time=1.7e9 + np.arange(50) / 3)
    write_log(timed, tmp_path / name)
    assert same(read_log(tmp_path / name), timed)


def test_times_are_numbers_or_iso_8601(tmp_path):
    path = tmp_path / "log.csv"
    head = "accept,acceptance,label,x,time\n"
    path.write_text(head + "1,0.5,1,3,2026-01-31T00:00:00Z\n0,0.2,,4,2026-01-31 01:00:00\n")
    found = read_log(path)
    assert np.diff(found.time).tolist() == [3600.0]
    assert found.names == ("x",)
    path.write_text(head + "1,0.5,1,3,17\n0,0.2,,4,\n")
    np.testing.assert_array_equal(read_log(path).time, [17.0, np.nan])
    path.write_text(head + "1,0.5,1,3,yesterday\n0,0.2,,4,today\n")
    with pytest.raises(InvalidInput, match="'yesterday'"):
        read_log(path)


def test_the_order_of_the_service_is_seq_and_at(tmp_path):
    """Beside columns that are marked as features; elsewhere a column `at` is a feature."""
    path = tmp_path / "log.csv"
    path.write_text("seq,at,accept,acceptance,label,feature_x\n4,9,1,0.5,1,3\n8,8,0,0.2,,4\n")
    found = read_log(path)
    assert (found.round.tolist(), found.time.tolist()) == ([4.0, 8.0], [9.0, 8.0])
    assert found.ids == ["4", "8"]
    with pytest.raises(InvalidInput, match="row 2"):
        found.require_order()
    path.write_text("at,accept,acceptance,label\n9,1,0.5,1\n8,0,0.2,\n")
    assert read_log(path).names == ("at",)


def test_a_group_called_na_is_a_group(tmp_path):
    found, _ = logged(20, 1)
    region = DecisionLog.of(
        found.features,
        found.accept,
        found.acceptance,
        found.label,
        group=np.where(found.group == "a", "NA", " b"),
    )
    for name in FILES:
        if name == "log.csv":
            with pytest.raises(InvalidInput, match="CSV"):
                write_log(region, tmp_path / name)
            assert not (tmp_path / name).exists()
        else:
            write_log(region, tmp_path / name)
            assert same(read_log(tmp_path / name), region)


def test_counts_round_trip(tmp_path):
    found, _ = logged(20, 1)
    counted = DecisionLog.of(
        found.features,
        found.accept,
        found.acceptance,
        found.label,
        group=found.group,
        count=np.arange(1, 21),
    )
    for name in FILES:
        write_log(counted, tmp_path / name)
        assert same(read_log(tmp_path / name), counted)


def test_json_lines_say_which_values_are_missing(tmp_path):
    path = tmp_path / "log.jsonl"
    row = '{"accept": true, "acceptance": 0.5, "label": 1, "group": %s, "x": 3}\n'
    path.write_text(row % '"NA"' + row % "null")
    assert read_log(path).group.tolist() == ["NA", None]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_of_other_libraries_are_logs(library):
    frames = pytest.importorskip(library)
    columns = {
        "group": ["NA", None, "b"],
        "accept": [True, False, True],
        "acceptance": [0.5, 0.25, 0.75],
        "label": [1, None, -1],
        "score": [3.0, 4.0, 5.0],
    }
    made = frames.table if library == "pyarrow" else frames.DataFrame
    found = read_log(made(columns))
    assert found.group.tolist() == ["NA", None, "b"]
    assert found.label.tolist() == [1, 0, -1]
    assert found.acceptance.tolist() == [0.5, 0.25, 0.75]
    assert (found.names, found.source) == (("score",), "the log")


def test_a_file_of_another_kind_is_not_written(tmp_path):
    with pytest.raises(InvalidInput, match="neither"):
        write_log(logged(5, 1)[0], tmp_path / "log.xyz")
    assert not (tmp_path / "log.xyz").exists()
