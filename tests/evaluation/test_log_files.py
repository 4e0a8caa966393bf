"""Every format gives back what was written, bit for bit; what others write is read; what cannot be
is named.
"""

import numpy as np
import pytest
from tests.evaluation.worlds import logged, same

from evenhand.errors import BadLabel, InvalidInput, MissingColumn
from evenhand.evaluation import DecisionLog, from_obp, read_log, to_obp, write_log
from evenhand.evaluation.log_files import FORMATS

FILES = ("log.parquet", "log.csv", "log.jsonl", "log.npz", "log.dsjson", "log.vw")


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
            with pytest.raises(InvalidInput, match="would be read back from CSV as something else"):
                write_log(region, tmp_path / name)
            assert not (tmp_path / name).exists()
        else:
            write_log(region, tmp_path / name)
            assert same(read_log(tmp_path / name), region)


def test_counts_live_in_our_own_formats(tmp_path):
    found, _ = logged(20, 1)
    counted = DecisionLog.of(
        found.features,
        found.accept,
        found.acceptance,
        found.label,
        group=found.group,
        count=np.arange(1, 21),
    )
    for name in FILES[:3]:
        write_log(counted, tmp_path / name)
        assert same(read_log(tmp_path / name), counted)
    for name in FILES[3:]:
        with pytest.raises(InvalidInput, match="has no counts"):
            write_log(counted, tmp_path / name)
        assert not (tmp_path / name).exists()


def test_obp_s_dict():
    log, _ = logged(100, 2, open_share=0.2)
    feedback = to_obp(log)
    assert feedback["n_rounds"] == 100
    assert feedback["n_actions"] == 2
    assert np.array_equal(
        feedback["pscore"], np.where(log.accept, log.acceptance, 1 - log.acceptance)
    )
    assert np.isnan(feedback["reward"][log.open]).all()
    assert (feedback["reward"][~log.accept] == 0).all()
    bare = {
        key: feedback[key]
        for key in ("n_rounds", "n_actions", "context", "action", "position", "reward", "pscore")
    }
    found = from_obp({**bare, "position": None})
    assert np.allclose(found.acceptance, log.acceptance, atol=1e-15)
    assert np.array_equal(found.label, log.label)
    assert found.names == ("x0", "x1", "x2")
    with pytest.raises(InvalidInput, match="holds no propensities"):
        from_obp({key: value for key, value in bare.items() if key != "pscore"})
    with pytest.raises(MissingColumn, match="has no reward"):
        from_obp({**bare, "reward": None})
    with pytest.raises(InvalidInput, match="has 3 actions"):
        from_obp({**bare, "n_actions": 3})
    with pytest.raises(InvalidInput, match="several positions"):
        from_obp({**bare, "position": np.ones(100)})
    with pytest.raises(BadLabel, match=r"0.7"):
        from_obp(
            {**bare, "reward": np.where(np.arange(100) == 3, 0.7, 1.0), "action": np.ones(100)}
        )
    with pytest.raises(InvalidInput, match="both are about the same coin"):
        from_obp({**feedback, "acceptance": log.acceptance * 0.9})


def test_a_pickle_is_not_opened(tmp_path):
    path = tmp_path / "log.npz"
    np.savez(path, context=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InvalidInput, match="pickles are not read"):
        read_log(path)
    path.write_text("nonsense")
    with pytest.raises(InvalidInput, match=r"is no .npz file"):
        read_log(path)


def test_unknown_formats(tmp_path):
    log, _ = logged(5, 1)
    with pytest.raises(InvalidInput, match=r"ends in '.xyz', which says no format"):
        write_log(log, tmp_path / "log.xyz")
    with pytest.raises(InvalidInput, match="the format 'nope' is unknown"):
        write_log(log, tmp_path / "log.csv", "nope")
    with pytest.raises(InvalidInput, match="is no file"):
        read_log(tmp_path / "missing.csv")
    write_log(log, tmp_path / "log.txt", "jsonl")
    assert same(read_log(tmp_path / "log.txt", "jsonl"), log)
    assert set(FORMATS) == {"parquet", "csv", "excel", "jsonl", "obp", "dsjson", "vw"}
