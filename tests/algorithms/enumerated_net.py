"""The net of fair pairs member by member, and exponential weights over it: slow, and independent of
`evenhand.algorithms.fair_net`.
"""

from math import exp, log, sqrt

import numpy as np

from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL, GroupClassifier


def members(gaps, limit, grid):
    """Every (r, s, w) of the net: w r + (1 - w) s; gaps (K, rules)."""
    rules = gaps.shape[1]
    found = [(r, r, 1.0) for r in range(rules) if max(abs(gaps[:, r])) <= limit]
    for r in range(rules):
        for s in range(r + 1, rules):
            low, high = fair_interval(gaps[:, r], gaps[:, s], limit)
            ends = {w for w in (low, high) if low <= high and 0 < w < 1}
            inner = {k / grid for k in range(1, grid) if low < k / grid < high}
            found += [(r, s, w) for w in sorted(ends | inner)]
    return found


def fair_interval(first, second, limit):
    """The weights of the first rule whose mixture has gaps within the limit."""
    low, high = 0.0, 1.0
    for g, h in zip(first, second, strict=True):
        if g == h:
            if abs(h) > limit:
                return 1.0, 0.0
            continue
        crossings = sorted(((-limit - h) / (g - h), (limit - h) / (g - h)))
        low, high = max(low, crossings[0]), min(high, crossings[1])
    return low, high


def cost_of(member, costs):
    r, s, w = member
    return w * costs[r] + (1 - w) * costs[s]


def mean_member(net, costs, rate):
    """(rules,): sum_i P_i pi_i with P_i proportional to exp(-rate cost_i)."""
    least = min(cost_of(member, costs) for member in net)
    chances = [exp(-rate * (cost_of(member, costs) - least)) for member in net]
    mean = np.zeros(len(costs))
    for (r, s, w), chance in zip(net, chances, strict=True):
        mean[r] += chance * w
        mean[s] += chance * (1 - w)
    return mean / sum(chances)


# what a learner must have deployed, from its own table of rounds


def rules_of(learner, world):
    """(rules, contexts) of the class, the constants, and the group classifiers where the group
    decides.
    """
    extra = [ACCEPT_ALL, REJECT_ALL]
    if learner.group_use == "decide":
        extra += [GroupClassifier(group) for group in learner.sample.groups]
    more = [rule.accepts(world.features, world.group) for rule in extra]
    return np.vstack([world.accepts, *more])


def false_positive_gap(learner, accepts):
    """The second group's false positive rate on the sample minus the first's."""
    sample = learner.sample
    rates = []
    for group in sample.groups:
        bad = (sample.group == group) & (sample.label == -1)
        weight = sample.weight[bad]
        rates.append(weight @ accepts[sample.features[bad, 0].astype(int)] / weight.sum())
    return rates[1] - rates[0]


def estimated_losses(learner, accepts):
    """What each rule would have cost beyond rejecting everybody, round by round; prices 1 and 1."""
    rounds = learner.rounds
    two_sided = learner.paper.sides == 2
    phases = {epoch.number: epoch.phase for epoch in rounds.epochs}
    costs = np.zeros(len(accepts))
    counted = 0
    for row in range(learner.state.learned_to):
        if two_sided and phases[int(rounds["epoch"][row])] == "explore":
            continue
        counted += 1
        context = int(rounds.features_of(slice(row, row + 1))[0, 0])
        p = rounds["acceptance"][row]
        label = rounds["label"][row]
        if rounds["accept"][row]:
            loss = (1.0 if label == -1 else 0.0) if two_sided else -label / 2
            costs += accepts[:, context] * loss / p
        elif two_sided:
            costs -= accepts[:, context] * 0.5 / (1 - p)
    return costs, counted


def expected_policy(learner, world, grid):
    """P[accept] on each context by EXP4 as its docstring has it, and the floor."""
    accepts = rules_of(learner, world)
    gaps = np.array([[false_positive_gap(learner, row) for row in accepts]])
    net = members(gaps, learner.slack.limit, grid)
    costs, rounds = estimated_losses(learner, accepts)
    sides = learner.paper.sides
    rate = sqrt(log(len(net)) / ((np.e - 1) * sides * rounds))
    floor = max(rate * {1: 0.5, 2: 1.0}[sides], 0.1 / sqrt(rounds))
    floor = min(floor, 0.5)
    mean = mean_member(net, costs, rate) @ accepts
    return floor + (1 - sides * floor) * mean, floor
