"""Simulated applications and their outcomes, for the rehearsals on these pages.

    python people.py FIRST COUNT [--changed]

writes decisions.json and outcomes.json, bodies for POST /v1/decisions/batch and
/v1/outcomes/batch. Person number n is the same in every call. With --changed nobody of group b
repays any more.
"""

import json
import random
import sys

first, count = int(sys.argv[1]), int(sys.argv[2])
changed = "--changed" in sys.argv
decisions = []
outcomes = []
for number in range(first, first + count):
    chance = random.Random(number)
    group = chance.choice("ab")
    score = chance.randint(400, 800)
    income = chance.randint(10, 90)
    good = chance.random() < (score - 400) / 400
    if changed and group == "b":
        good = False
    decisions.append(
        {
            "key": f"a{number}",
            "person": f"p{number}",
            "product": "loan",
            "features": {"score": score, "income": income},
            "group": group,
        }
    )
    outcomes.append({"key": f"a{number}", "label": 1 if good else -1})
with open("decisions.json", "w") as file:
    json.dump({"decisions": decisions}, file)
with open("outcomes.json", "w") as file:
    json.dump({"outcomes": outcomes}, file)
