"""Vowpal Wabbit's cb text: `action:cost:probability 'tag |x name:value ...`; action 1 accepts, 2
rejects; costs as in `dsjson`.

`vw --cb 2` learns from the file as it is. The tag carries what the label cannot say: id, group, the
probability of accepting (1 - p would only round to it), and what was decided where no label can be
given, because the outcome of an accept is open. It is written as in the query of a web address, so
it has no blanks, colons or bars; so are the names of features.
"""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

import numpy as np

from evenhand.errors import InvalidInput
from evenhand.evaluation.decision_log import DecisionLog, no_propensities
from evenhand.evaluation.formats.dsjson import ACCEPT, COSTS, NAMESPACE, REJECT, REJECTED
from evenhand.evaluation.formats.reading import (
    TOLERANCE,
    Reading,
    feature_columns,
    log_of_columns,
    with_group,
)


def write(log: DecisionLog, path: Path) -> None:
    """One line per decision."""
    log.require_single("cb text")
    with path.open("w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in _lines(log))


def _lines(log: DecisionLog) -> Any:
    names = [quote(name, safe="") for name in log.names]
    ids = None if log.id is None else log.id.tolist()
    columns = (
        log.features.tolist(),
        log.accept.tolist(),
        log.acceptance.tolist(),
        log.label.tolist(),
        log.group.tolist(),
    )
    for row, (x, accept, p, label, group) in enumerate(zip(*columns, strict=True)):
        known = (
            ""
            if accept and label == 0
            else f"{ACCEPT}:{COSTS[label]}:{p!r} "
            if accept
            else f"{REJECT}:{REJECTED}:{1.0 - p!r} "
        )
        told = {
            "id": None if ids is None else ids[row],
            "accept": int(accept),
            "p": repr(p),
            "group": group,
        }
        tag = urlencode({key: value for key, value in told.items() if value is not None})
        features = " ".join(f"{name}:{value!r}" for name, value in zip(names, x, strict=True))
        yield f"{known}'{tag} |{NAMESPACE} {features}"


def read(path: Path, told: Reading) -> DecisionLog:
    """Lines of two actions.

    The cost of an accept says its outcome: 0 is good and 1 bad, unless `good` names another cost.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path} is not UTF-8 text ({error.reason} at byte {error.start})."
        ) from error
    lines = [line for line in text.split("\n") if line.strip()]
    heads = [_head(line, number, told.source) for number, line in enumerate(lines, 1)]
    rows = [_features(line, number, told.source) for number, line in enumerate(lines, 1)]
    group = with_group(rows, told, [tag.get("group") for _, _, _, tag in heads])
    ids = [tag.get("id") for _, _, _, tag in heads]
    columns = {
        "accept": np.array([accept for accept, _, _, _ in heads], dtype=bool),
        "acceptance": np.array([p for _, p, _, _ in heads], dtype=np.float64),
        "label": told.outcomes([cost for _, _, cost, _ in heads]),
        "group": group,
        **({} if all(value is None for value in ids) else {"id": ids}),
        **{f"feature_{name}": values for name, values in feature_columns(rows).items()},
    }
    return log_of_columns(columns, Reading(told.source, {}, told.features))


def _head(line: str, number: int, source: str) -> tuple[bool, float, str | None, dict[str, str]]:
    """(accepted, probability of accepting, cost of the accept or None, tag)."""
    where = f"{source}: line {number}"
    words = line.split("|", 1)[0].split()
    tag = dict(parse_qsl(next((word[1:] for word in words if word.startswith("'")), "")))
    label = next((word for word in words if ":" in word and not word.startswith("'")), None)
    stated = _number(tag["p"], where) if "p" in tag else None
    if label is None:
        if stated is None or "accept" not in tag:
            raise no_propensities(where)
        return tag["accept"] == "1", stated, None, tag
    parts = label.split(":")
    if len(parts) < 3:
        raise no_propensities(where)
    if parts[0] not in (str(ACCEPT), str(REJECT)):
        raise InvalidInput(
            f"{where} chose action {parts[0]}; a decision has two: 1 accepts, 2 rejects."
        )
    accept, chance = parts[0] == str(ACCEPT), _number(parts[2], where)
    p = chance if accept else 1.0 - chance
    if stated is not None and abs(stated - p) > TOLERANCE:
        raise InvalidInput(
            f"{where} states the acceptance probability {stated:g} in its tag and {p:g} in its label."
        )
    return accept, p if stated is None else stated, parts[1] if accept else None, tag


def _features(line: str, number: int, source: str) -> dict[str, Any]:
    """Features by name; those of another namespace than ours are `namespace^name`; no value means
    1.
    """
    found: dict[str, Any] = {}
    for part in line.split("|")[1:]:
        words = part.split()
        namespace = words.pop(0).split(":")[0] if words and not part[0].isspace() else NAMESPACE
        mark = "" if namespace == NAMESPACE else f"{unquote(namespace)}^"
        for word in words:
            name, _, value = word.partition(":")
            found[mark + unquote(name)] = (
                _number(value, f"{source}: line {number}") if value else 1.0
            )
    return found


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{where} holds {text!r} where a number belongs.") from None
