"""Vowpal Wabbit as its users run it, person by person, on a population whose truth is known: how
often is its policy above the guarantee?
"""

import numpy as np

EVERY = 20
"""Rounds between two looks at the whole policy."""


def share_above(world, arguments, guarantee, seed, rounds):
    """The share of rounds in which the |FPR gap| of VW's current policy exceeds `guarantee`.

    Each context is a category of its own; rejecting costs the known 1/2 of the transformed loss,
    accepting a bad person 1.
    """
    from vowpalwabbit import Workspace

    vw = Workspace(f"{arguments} --quiet --random_seed {seed + 1}")
    generator = np.random.default_rng(seed)
    contexts = [f"| c{j}" for j in range(len(world))]
    bad = world.probability * (1 - world.positive_rate)
    share = {a: bad * (world.group == a) / bad[world.group == a].sum() for a in (-1, 1)}
    people, coins = (
        generator.choice(len(world), rounds, p=world.probability),
        generator.random((2, rounds)),
    )
    above = 0
    for t, (j, coin, fate) in enumerate(zip(people.tolist(), *coins.tolist(), strict=True)):
        if t % EVERY == 0:
            accepts = np.array([vw.predict(context)[0] for context in contexts])
            above += abs(share[1] @ accepts - share[-1] @ accepts) > guarantee
        chance = vw.predict(contexts[j])
        accept = coin < chance[0]
        cost = float(fate >= world.positive_rate[j]) if accept else 0.5
        vw.learn(f"{1 if accept else 2}:{cost}:{chance[0 if accept else 1]} {contexts[j]}")
    return above / len(range(0, rounds, EVERY))
