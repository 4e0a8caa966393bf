"""Durable throughput: 64 clients on SQLite FULL beside the same application without any write, in
one run.
"""

import asyncio
import contextlib
import os
import time

import numpy as np
import psycopg
from service.tests.torture.policies import database
from service.tests.torture.serving import Process, application, folder, processor, ticks


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
                answer = await client.post(
                    "/v1/decisions/batch", {"decisions": [application(key) for key in keys]}
                )
            done[0] += batch * (answer is not None and answer[0] == 200)
            i += 1
        client.close()

    await asyncio.gather(*(one(number) for number in range(clients)))
    return done[0] / (time.monotonic() - began)


@contextlib.contextmanager
def apart(processes):
    """The services on one core and the clients on another, as service/docs/operating.md advises."""
    cores = sorted(os.sched_getaffinity(0))
    try:
        _bind(processes, cores[:1], cores[1:] or cores)
        yield
    finally:
        _bind(processes, cores, cores)


def _bind(processes, services, clients):
    for process in processes:
        for thread in os.listdir(f"/proc/{process.pid}/task"):
            os.sched_setaffinity(int(thread), services)
    os.sched_setaffinity(0, clients)


def throughput(quick):
    """Short turns, one after another, so that all kinds meet the same neighbours; the median of
    their ratios.
    """
    turns, seconds, bound, free = (2 if quick else 40), 0.6, [], []
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(Process(folder(), kind).running())
            for kind in ("dry", "real", "real")
        ]

        def turn():
            return [
                asyncio.run(rate(p, seconds, 64, batch))
                for p, batch in zip(processes, (1, 1, 100), strict=True)
            ]

        for _ in range(turns):
            free.append(turn())
            with apart(processes):
                bound.append(turn())
    (one, times, rates), (loose, loose_times, _) = _ratios(bound), _ratios(free)
    figure = (
        f"{one:.2f} of no write, batches of 100 {times:.1f} times singles (services on one core, "
        f"clients on the other; left to the scheduler {loose:.2f} and {loose_times:.1f}; "
        f"medians of {turns} turns; per second: no write {rates[0]:.0f}, durable {rates[1]:.0f}, "
        f"in batches {rates[2]:.0f})"
    )
    return (
        "singles >= .8 of the same application without any write; batches >= 5 times singles",
        figure,
        (one >= 0.8 and times >= 5),
    )


def _ratios(rates):
    """(durable / no write, batches / durable, the rates themselves): medians over the turns."""
    none, single, many = np.array(rates).T
    return (
        float(np.median(single / none)),
        float(np.median(many / single)),
        np.median(rates, axis=0),
    )


# beside a plain insert


def server_processor(url):
    """Seconds of processor that a PostgreSQL server has used, all its processes."""
    with psycopg.connect(url) as connection:
        postmaster = ticks(connection.info.backend_pid)[4]
    total = sum(ticks(postmaster)[:4])
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            *used, parent = ticks(int(pid))
            total += sum(used[:2]) * (parent == postmaster)
    return total / os.sysconf("SC_CLK_TCK")


def _cost(process, seconds, batch, url=None):
    """Microseconds of processor per durable answer, of 64 clients: (of the service, of the database
    server).
    """
    server = server_processor(url) if url else 0.0
    before, began = processor(process), time.monotonic()
    answered = asyncio.run(rate(process, seconds, 64, batch)) * (time.monotonic() - began)
    used = [processor(process) - before, (server_processor(url) if url else 0.0) - server]
    return [1e6 * one / max(answered, 1) for one in used]


def _beside(turns, url=None):
    """(rates of singles and of batches beside the plain application's, of the services alone and
    with the database's server; the costs): medians over the turns.
    """
    places = [folder(), folder()]
    settings = [f'ledger = "{url}"\nkeyring = "{p}/keyring.json"\n' * bool(url) for p in places]
    with contextlib.ExitStack() as stack:
        plain, real = (
            stack.enter_context(Process(place, kind, more=more).running())
            for place, kind, more in zip(places, ("plain", "real"), settings, strict=True)
        )
        sides = ((plain, 1), (real, 1), (plain, 100), (real, 100))
        for process, batch in sides:
            _cost(process, 0.5, batch)  # warm
        found = np.array(
            [[_cost(process, 1.0, batch, url) for process, batch in sides] for _ in range(turns)]
        )
    alone, whole = found[:, :, 0], found.sum(axis=2)
    ratios = [
        [float(np.median(used[:, place] / used[:, place + 1])) for place in (0, 2)]
        for used in (alone, whole)
    ]
    return *ratios, np.median(found, axis=0)


def beside_an_insert(quick):
    """Decisions per second of processor beside a FastAPI application that does one plain insert
    into the same database (of a batch: one `executemany`), behind the same server, left to the
    scheduler, in turns; medians of the ratios.
    """
    turns = 2 if quick else 15
    (single, many), _, costs = _beside(turns)
    figure = f"SQLite: {_told(single, many, costs)}"
    held = single >= 1.5 and many >= 0.5
    with database() as url:
        if url is not None:
            (single, many), (with_server, many_with_server), costs = _beside(turns, url)
            servers = ", ".join(f"{cost:.0f}" for cost in costs[:, 1])
            figure += (
                f"; PostgreSQL: {_told(single, many, costs)}; its server's processor {servers} us, "
                f"and with it {with_server:.2f} and {many_with_server:.2f}"
            )
            held = held and single >= 1.5 and many >= 0.5
    target = "singles >= 1.5 and batches of 100 >= .5 of a plain insert's rate per processor second"
    return target, f"{figure}; medians of {turns} turns", held


def _told(single, many, costs):
    plain, real, plain_batch, real_batch = costs[:, 0]
    return (
        f"singles {single:.2f} ({real:.0f} and {plain:.0f} us each), batches of 100 {many:.2f} "
        f"({real_batch:.1f} and {plain_batch:.1f} us)"
    )
