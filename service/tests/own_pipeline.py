"""A pipeline of somebody's own, on a frame with a text, a category, a truth value and gaps; and
people for it.
"""

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder


class OwnRegression(LogisticRegression):
    """A type that is nobody else's: whoever loads it has to say that it may be loaded."""


CITIES = ["Oslo", "Rome", "Lima"]
FEATURES = """features = [
    {name = "income", missing = true},
    {name = "city", kind = "category", categories = ["Oslo", "Rome", "Lima"]},
    {name = "history", kind = "text", length = 60},
    {name = "member", kind = "boolean", missing = true},
]"""
COLUMNS = {
    "income": {"missing": True},
    "city": {"kind": "category", "categories": CITIES},
    "history": {"kind": "text", "length": 60},
    "member": {"kind": "boolean", "missing": True},
}


def pipeline(last=LogisticRegression):
    """It looks at the text, the city and the income, and never at the membership."""
    columns = ColumnTransformer(
        [
            ("text", CountVectorizer(vocabulary=["paid", "late", "steady"]), "history"),
            ("city", OneHotEncoder(handle_unknown="ignore"), ["city"]),
            ("income", SimpleImputer(strategy="median", keep_empty_features=True), ["income"]),
        ]
    )
    return make_pipeline(columns, last(max_iter=200))


def of_own_types():
    """The same with a type of one's own at its end."""
    return pipeline(OwnRegression)


def people(number, seed):
    """[(good, features, group)]"""
    rng, found = np.random.default_rng(seed), []
    for _ in range(number):
        good = bool(rng.random() < 0.5)
        features = {
            "income": None if rng.random() < 0.2 else round(rng.normal(50 if good else 35, 8), 1),
            "city": str(rng.choice(CITIES, p=[0.6, 0.3, 0.1] if good else [0.1, 0.5, 0.4])),
            "history": "paid steady" if rng.random() < (0.85 if good else 0.1) else "late late",
            "member": [True, False, None][rng.integers(3)],
        }
        found.append((good, features, str(rng.choice(["a", "b"]))))
    return found
