"""Rules that are members from the first round: the incumbent's, so that the first certificate can
be about the rule of today.

A candidate is fixed before the first person arrives, so its process may look at all people of the
first epoch with a record. The union over the class has one more member for each; where hypotheses
are nominated one by one, candidates are the first nominees.
"""

from collections.abc import Mapping, Sequence
from reprlib import repr as short

import numpy as np

from evenhand.contracts import Hypothesis
from evenhand.errors import EvenhandError, InvalidInput
from evenhand.hypotheses.constants import is_constant
from evenhand.hypotheses.estimator import Fitted
from evenhand.hypotheses.serialise import hypothesis_from_json
from evenhand.schema import Schema
from evenhand.words import FloatArray, GroupArray

REQUIREMENT = (
    "a candidate is a rule: a hypothesis, the JSON of one, or a fitted classifier or pipeline that "
    "predicts 1 for whom it accepts"
)


def as_candidates(given: object) -> tuple[Hypothesis, ...]:
    """The rules, each once and without constants, which are members anyway; InvalidInput for what
    is no rule.
    """
    if given is None:
        return ()
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sequence):
        raise InvalidInput(
            f"candidates is {short(given)}",
            requirement=f"it is a list; {REQUIREMENT}",
            hint="put a single rule into a list: [rule].",
            argument="candidates",
        )
    rules: list[Hypothesis] = []
    for number, one in enumerate(given):
        rule = _as_rule(one, number)
        if not is_constant(rule) and rule not in rules:
            rules.append(rule)
    return tuple(rules)


def _as_rule(given: object, number: int) -> Hypothesis:
    if isinstance(given, Hypothesis):
        return given
    if isinstance(given, Mapping):
        try:
            return hypothesis_from_json(dict(given))
        except (EvenhandError, LookupError, TypeError, ValueError) as error:
            raise _no_rule(given, number, f"it is no JSON of a rule ({error})") from error
    if not hasattr(given, "predict"):
        raise _no_rule(given, number, "it does not decide about anybody")
    columns = getattr(given, "n_features_in_", None)
    if columns is None:
        raise _no_rule(given, number, "it has not been fitted")
    classes = np.asarray(getattr(given, "classes_", [1])).tolist()
    if 1 not in classes:
        raise _no_rule(given, number, f"it predicts one of {short(classes)}, and never 1")
    return Fitted(given, int(columns))


def _no_rule(given: object, number: int, why: str) -> InvalidInput:
    return InvalidInput(
        f"candidates[{number}] is {short(given)}; {why}",
        requirement=REQUIREMENT,
        hint="a scorecard with its cut-off is evenhand.hypotheses.LinearRule(weights, cut_off), or "
        "Threshold(column, cut_off, columns=...) on a score that is a column.",
        argument="candidates",
    )


def reading(candidates: tuple[Hypothesis, ...], schema: Schema) -> tuple[Hypothesis, ...]:
    """The same for people who come in frames: a model that was fitted to named columns is shown
    frames with these names.
    """
    return tuple(
        Fitted(rule.model, len(schema.slots), schema)
        if isinstance(rule, Fitted) and hasattr(rule.model, "feature_names_in_")
        else rule
        for rule in candidates
    )


def require_readable(
    candidates: tuple[Hypothesis, ...], rows: FloatArray, group: GroupArray | None
) -> None:
    """InvalidInput if a candidate cannot decide about these people: it reads other columns, say."""
    for number, rule in enumerate(candidates):
        used = rule.columns_used
        outside = [column for column in used or () if column >= rows.shape[1]]
        problem = f"it reads column {outside[0]}" if outside else None
        if problem is None:
            try:
                rule.accepts(rows[:1], None if group is None else group[:1])
            except (EvenhandError, LookupError, TypeError, ValueError) as error:
                problem = str(error)
        if problem is not None:
            raise InvalidInput(
                f'candidates[{number}], "{rule.describe()}", cannot decide about people with '
                f"{rows.shape[1]} columns: {problem}",
                requirement="a candidate reads the columns of the people, and no others",
                hint="pass the people with the columns that the rule was made for, or leave it "
                "out of candidates.",
                argument="candidates",
            )
