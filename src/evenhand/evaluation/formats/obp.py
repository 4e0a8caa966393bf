"""Open Bandit Pipeline's `bandit_feedback`: action 1 accepts, 0 rejects; pscore is the probability
of the action that was taken.

reward is 1 for a good outcome of an accept, 0 for a bad one, NaN while it is open; a reject earns
0, which is no label. So OBP's own estimators return good accepts per person. A file is the dict as
.npz, never a pickle. `context_names`, `group`, `id` and `acceptance` (which 1 - pscore would only
round to) are beyond OBP's keys.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.errors import InvalidInput, MissingColumn
from evenhand.evaluation.decision_log import DecisionLog, no_propensities
from evenhand.evaluation.formats.reading import Reading, agreed, log_of_columns

OBP_KEYS = ("n_rounds", "n_actions", "context", "action", "position", "reward", "pscore")


def to_obp(log: DecisionLog) -> dict[str, Any]:
    """The dict."""
    log.require_single("Open Bandit Pipeline")
    reward = np.where(log.label == 1, 1.0, np.where(log.open, np.nan, 0.0))
    return {
        "n_rounds": len(log),
        "n_actions": 2,
        "context": log.features,
        "action_context": np.eye(2),
        "action": log.accept.astype(np.int64),
        "position": np.zeros(len(log), dtype=np.int64),
        "reward": reward,
        "pscore": log.propensity,
        "acceptance": log.acceptance,
        "context_names": np.array(log.names, dtype=str),
        "group": _texts(log.group),
        **({} if log.id is None else {"id": _texts(log.id)}),
    }


def from_obp(feedback: Mapping[str, Any], told: Reading | None = None) -> DecisionLog:
    """The log of a dict; of OBP's keys it needs context, action, reward and pscore."""
    reading = told or Reading("the bandit feedback")
    if feedback.get("pscore") is None:
        raise no_propensities(reading.source)
    missing = [key for key in ("context", "action", "reward") if feedback.get(key) is None]
    if missing:
        raise MissingColumn(
            f"{reading.source} has no {', '.join(missing)}; a bandit feedback has {', '.join(OBP_KEYS)}."
        )
    action = np.asarray(feedback["action"])
    _require_two_actions(feedback, action, reading.source)
    context = np.asarray(feedback["context"], dtype=np.float64)
    names = feedback.get("context_names")
    named = (
        [f"x{j}" for j in range(context.shape[1])]
        if names is None
        else [str(name) for name in names]
    )
    columns = {f"feature_{name}": context[:, j] for j, name in enumerate(named)}
    beside = {
        key: np.asarray(feedback[key]).tolist()
        for key in ("group", "id")
        if feedback.get(key) is not None
    }
    pscore = np.asarray(feedback["pscore"], dtype=np.float64)
    acceptance = np.where(action == 1, pscore, 1.0 - pscore)
    if feedback.get("acceptance") is not None:
        acceptance = agreed(
            np.asarray(feedback["acceptance"], dtype=np.float64), acceptance, reading.source
        )
    reward = np.where(action == 1, np.asarray(feedback["reward"], dtype=np.float64), np.nan)
    roles = {"accept": action == 1, "acceptance": acceptance, "label": reward}
    return log_of_columns({**roles, **beside, **columns}, reading)


def _require_two_actions(feedback: Mapping[str, Any], action: Any, source: str) -> None:
    actions = int(feedback.get("n_actions") or 2)
    if actions != 2 or not np.isin(action, (0, 1)).all():
        raise InvalidInput(
            f"{source} has {actions} actions, among them {action.max()}; a decision is 1 (accept) or 0 (reject)."
        )
    position = feedback.get("position")
    if position is not None and np.asarray(position).dtype != object and np.asarray(position).any():
        raise InvalidInput(
            f"{source} has several positions in a round; a decision is about one person."
        )


def write(log: DecisionLog, path: Path) -> None:
    """The dict as .npz."""
    feedback = to_obp(log)
    with path.open("wb") as file:
        np.savez(file, **feedback)


def read(path: Path, told: Reading) -> DecisionLog:
    """The dict from .npz; pickled objects are refused."""
    try:
        with np.load(path, allow_pickle=False) as found:
            feedback = {name: found[name] for name in found.files}
    except (ValueError, OSError) as error:
        raise InvalidInput(
            f"{path} is no .npz file of plain arrays ({error}).",
            hint="np.savez(path, **bandit_feedback), without keys that are None; pickles are not read.",
        ) from error
    return from_obp(feedback, told)


def _texts(values: Any) -> Any:
    return np.array(["" if value is None else value for value in values.tolist()], dtype=str)
