"""The policy that is asked about: pi(x), the probability with which it would accept each person of
the log.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.contracts import Policy
from evenhand.errors import InvalidInput, MissingColumn
from evenhand.evaluation.decision_log import DecisionLog
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.hypotheses.serialise import policy_from_json
from evenhand.policies import Mixture
from evenhand.words import FloatArray

CONSTANTS = {"accept-all": ACCEPT_ALL, "reject-all": REJECT_ALL}


@dataclass(frozen=True, eq=False)
class Candidate:
    """A policy with the columns it expects, by name; without names, all columns of the log in their
    order.
    """

    policy: Policy
    columns: tuple[str, ...] | None = None
    name: str = "the candidate"

    @classmethod
    def read(cls, where: str) -> "Candidate":
        """ "accept-all", "reject-all", or a file: a policy as JSON, alone or as `evenhand solve
        --out` writes it.
        """
        if where in CONSTANTS:
            return cls(Mixture((CONSTANTS[where],), (1.0,)), None, where)
        document = _document(Path(where))
        columns = document.get("columns") if "policy" in document else None
        policy = policy_from_json(document.get("policy", document))
        return cls(policy, None if columns is None else tuple(columns), Path(where).name)

    @property
    def spread(self) -> tuple[float, float]:
        """(base, scale): pi = base + scale pi', where base is the weight of accept-all and pi' has
        no constants; scale 0: no rule is left.

        A constant accepts all groups alike, so the gap of pi is scale times that of pi', and the
        bound need not pay for it.
        """
        if type(self.policy) is not Mixture:
            return 0.0, 1.0
        base, never = (self.policy.weight_of(constant) for constant in (ACCEPT_ALL, REJECT_ALL))
        parts = zip(self.policy.hypotheses, self.policy.weights, strict=True)
        rules = [h for h, w in parts if h not in (ACCEPT_ALL, REJECT_ALL) and w > 0]
        return (base, max(1.0 - base - never, 0.0)) if rules else (base, 0.0)

    def acceptance(self, log: DecisionLog) -> FloatArray:
        """pi(x) for every row of the log."""
        if getattr(self.policy, "group_use", "certify_only") == "decide":
            return self.policy.acceptance(self._features(log), _known_groups(log))
        return np.asarray(self.policy.acceptance(self._features(log)), dtype=np.float64)

    def _features(self, log: DecisionLog) -> FloatArray:
        if self.columns is None or self.columns == log.names:
            return log.features
        missing = [name for name in self.columns if name not in log.names]
        if missing:
            raise MissingColumn(
                f"{self.name} decides by {', '.join(map(repr, missing))}, which {log.source} does not hold; its features are: "
                f"{', '.join(log.names)}.",
                hint="log what the policy looks at, under the same names (one 0/1 column per value of an encoded column).",
            )
        return np.ascontiguousarray(
            log.features[:, [log.names.index(name) for name in self.columns]]
        )


def _known_groups(log: DecisionLog) -> Any:
    missing = np.array([value is None for value in log.group.tolist()])
    if missing.any():
        raise InvalidInput(
            f"{log.source}: row {int(np.argmax(missing)) + 1} has no group ({int(missing.sum()):,} such rows), but the "
            "candidate decides by it.",
            hint="give the groups, or evaluate a policy that does not look at them.",
        )
    return np.array(log.group.tolist())


def _document(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InvalidInput(
            f"the policy {str(path)!r} is neither accept-all nor reject-all nor a file.",
            hint="evenhand solve ... --out policy.json writes one.",
        )
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InvalidInput(
            f"{path} is no JSON ({error}).",
            hint="evenhand solve ... --out policy.json writes a policy.",
        ) from error
    if not isinstance(found, dict):
        raise InvalidInput(f"{path} holds a {type(found).__name__}; a policy is an object.")
    return found
