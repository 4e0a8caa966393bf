"""Models of several libraries survive being stored, and nothing strange is loaded."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from tests.tools import need

from evenhand.errors import InvalidInput, NotSerialisable
from evenhand.hypotheses.models import StoredModel, load_model, store_model

pytest.importorskip("skops")


def people():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "job": rng.choice(["cook", "clerk", None], 300),
            "debt": np.where(rng.random(300) < 0.1, np.nan, rng.normal(size=300)),
        }
    )
    return frame, (rng.random(300) < 0.5).astype(int)


def pipeline(model):
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["job"]), (SimpleImputer(), ["debt"])
    )
    return make_pipeline(columns, model)


def forest():
    from sklearn.ensemble import RandomForestClassifier

    return pipeline(RandomForestClassifier(5, random_state=0))


def boosting():
    from sklearn.ensemble import HistGradientBoostingClassifier

    return pipeline(HistGradientBoostingClassifier(max_iter=5))


def lightgbm():
    need("libgomp")
    from lightgbm import LGBMClassifier

    return pipeline(LGBMClassifier(n_estimators=5, verbose=-1))


def xgboost():
    return pipeline(pytest.importorskip("xgboost").XGBClassifier(n_estimators=5))


@pytest.mark.parametrize("make", [forest, boosting, lightgbm, xgboost])
def test_a_model_comes_back_as_it_was(make):
    frame, label = people()
    model = make().fit(frame, label)
    stored = store_model(model)
    assert store_model(model) == stored
    np.testing.assert_array_equal(
        load_model(stored).predict_proba(frame), model.predict_proba(frame)
    )


def test_categories_of_lightgbm_come_back():
    need("libgomp")
    from lightgbm import LGBMClassifier

    frame, label = people()
    typed = frame.assign(job=frame.job.astype("category"))
    model = LGBMClassifier(n_estimators=5, verbose=-1).fit(typed, label)
    np.testing.assert_array_equal(
        load_model(store_model(model)).predict_proba(typed), model.predict_proba(typed)
    )


def test_another_process_reads_the_same_model(tmp_path):
    frame, label = people()
    model = forest().fit(frame, label)
    stored = store_model(model)
    (tmp_path / "model").write_bytes(stored.data)
    frame.to_pickle(tmp_path / "frame")
    script = (
        "import sys, pandas, hashlib\n"
        "from evenhand.hypotheses.models import StoredModel, load_model\n"
        "data = open(sys.argv[1] + '/model', 'rb').read()\n"
        "model = load_model(StoredModel(data, (), sys.argv[2]))\n"
        "print(model.predict_proba(pandas.read_pickle(sys.argv[1] + '/frame'))[:, 1].tolist())\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), stored.sha256],
        capture_output=True,
        text=True,
        check=True,
    )
    assert eval(answer.stdout) == model.predict_proba(frame)[:, 1].tolist()


def test_changed_bytes_are_refused():
    frame, label = people()
    stored = store_model(forest().fit(frame, label))
    with pytest.raises(InvalidInput):
        load_model(StoredModel(stored.data + b" ", stored.types, stored.sha256))


class Strange:
    """A type that no reader knows."""

    def __init__(self):
        self.secret = 3


def test_a_type_that_nobody_named_is_not_loaded():
    stored = store_model(Strange())
    name = f"{Strange.__module__}.Strange"
    assert name in stored.types
    with pytest.raises(InvalidInput, match=r"Strange.*trusted="):
        load_model(stored)
    claimed = StoredModel(stored.data, (), stored.sha256)  # the list of types is not believed
    with pytest.raises(InvalidInput, match="Strange"):
        load_model(claimed)
    assert load_model(stored, trusted=[name]).secret == 3


def test_what_cannot_be_written_is_refused_by_name():
    from sklearn.preprocessing import FunctionTransformer

    with pytest.raises(NotSerialisable, match="FunctionTransformer"):
        store_model(FunctionTransformer(lambda rows: rows))
