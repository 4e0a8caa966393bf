"""Durable throughput: 64 clients on SQLite FULL beside the same application without any write, in one run."""

import asyncio
import contextlib
import time

import numpy as np
from tests.torture.serving import Process, application, folder


async def rate(process, seconds, clients, batch):
    """Decisions per second, from the first request to the last answer."""
    began = time.monotonic()
    done, end = [0], began + seconds

    async def one(number):
        client, i = process.client(), 0
        while time.monotonic() < end:
            keys = [f"t{batch}-{end}-{number}-{i}-{j}" for j in range(batch)]
            if batch == 1:
                answer = await client.post("/v1/decisions", application(keys[0]))
            else:
                answer = await client.post("/v1/decisions/batch", {"decisions": [application(key) for key in keys]})
            done[0] += batch * (answer is not None and answer[0] == 200)
            i += 1
        client.close()

    await asyncio.gather(*(one(number) for number in range(clients)))
    return done[0] / (time.monotonic() - began)


def throughput(quick):
    """Short turns, one after another, so that both kinds meet the same neighbours; the median of their ratios."""
    turns, seconds, rates = (2 if quick else 60), 0.6, []
    with contextlib.ExitStack() as stack:
        dry, durable, batches = (stack.enter_context(Process(folder(), k).running()) for k in ("dry", "real", "real"))
        for _ in range(turns):
            asked = ((dry, 64, 1), (durable, 64, 1), (batches, 64, 100))
            rates.append([asyncio.run(rate(process, seconds, clients, batch)) for process, clients, batch in asked])
    none, single, many = np.array(rates).T
    one, times = float(np.median(single / none)), float(np.median(many / single))
    figure = (
        f"{one:.2f} of no write, batches of 100 {times:.1f} times singles (medians of {turns} turns; per second: no write "
        f"{np.median(none):.0f}, durable {np.median(single):.0f}, in batches {np.median(many):.0f})"
    )
    return (
        "singles >= .8 of the same application without any write; batches >= 5 times singles",
        figure,
        (one >= 0.8 and times >= 5),
    )
