"""The disk says no: it is full, or its fsync fails. Nobody is answered. Once there is room, the
service goes on by itself; after an fsync that failed it needs a restart.
"""

import asyncio
import os
import subprocess

from service.tests.torture.kills import reopened
from service.tests.torture.serving import Process, application, folder
from tests.tools import find, need_trace

from evenhand_service.ledger import verify


async def _press(process, most, after):
    """({key: body} of answers, statuses of the rest): until `after` requests in a row have not been
    answered, or `most` were sent.
    """
    answered, refused, row = {}, [], 0
    clients = [process.client() for _ in range(4)]
    for start in range(0, most, 4):
        keys = [f"d{start + i}" for i in range(4)]
        found = await asyncio.gather(
            *(c.post("/v1/decisions", application(k)) for c, k in zip(clients, keys, strict=True))
        )
        for key, answer in zip(keys, found, strict=True):
            if answer is not None and answer[0] == 200:
                answered[key], row = answer[1], 0
            else:
                refused.append(None if answer is None else answer[0])
                row += 1
        if row >= after:
            break
    health = await clients[0].get("/health")
    return answered, refused, health[0] if health else None


async def _again(process, answered):
    """(answers that are not the stored ones, the status of somebody new)."""
    client, wrong = process.client(), 0
    for key, body in answered.items():
        found = await client.post("/v1/decisions", application(key))
        wrong += found is None or found[1] != body
    new = await client.post("/v1/decisions", application("after"))
    return wrong, new[0] if new else None


def _judged(place, log, answered, refused, health):
    """Restart on a sound disk."""
    with Process(place, log=log).running() as process:
        wrong, new = asyncio.run(_again(process, answered))
    with reopened(place) as ledger:
        sound = verify(ledger, deep=True).ok
        late = ledger.counts("loan").decisions - len(answered) - 1  # of somebody new
    told = (
        f"{len(answered):,} answered, "
        f"then {len(refused)} x {'/'.join(sorted({str(s) for s in refused}))}, health {health}"
    )
    figure = (
        f"{told}; after a restart {wrong} answers lost, chain {'sound' if sound else 'BROKEN'}, "
        f"the next answer {new}"
    )
    held = (
        bool(answered)
        and refused
        and set(refused) == {503}
        and health == 503
        and wrong == 0
        and sound
        and new == 200
    )
    return figure + (f" ({late} rows that nobody was told of)" if late > 0 else ""), bool(held)


def full(quick):
    """A file system of 2 MB, where root may mount one; elsewhere a limit on the size of the files
    of the process.
    """
    place, log = folder(), folder() / "log"
    mount = find("mount") if os.geteuid() == 0 else None
    size = [mount, "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    if mount is None or subprocess.run(size, check=False, capture_output=True).returncode:
        figure, held = pressed(Process(place, "cramped", log=log, train_every=3600))
        return f"(by RLIMIT_FSIZE, for nothing could be mounted) {figure}", held
    try:
        return pressed(
            Process(place, log=log, train_every=3600),
            [mount, "-o", "remount,size=64m", str(place)],
        )
    finally:
        subprocess.run(["umount", str(place)], check=False)


def pressed(process, make_room=None):
    """(figure, held): until nobody is answered any more; then room, and a restart."""
    with process.running():
        answered, refused, health = asyncio.run(_press(process, 20_000, 40))
        healed = None
        if make_room is not None:
            subprocess.run(make_room, check=True)
            healed = asyncio.run(_again(process, answered))
    figure, held = _judged(process.folder, process.log, answered, refused, health)
    if healed is None:
        return figure, held
    return f"{figure}; before it, with room, {healed[1]}", held and healed == (0, 200)


def failing(quick):
    """Every fdatasync from the sixtieth of its thread on ends in EIO."""
    strace = need_trace()
    place = folder()
    under = [
        strace,
        "-f",
        "-o",
        "/dev/null",
        "-e",
        "trace=fdatasync",
        "-e",
        "inject=fdatasync:error=EIO:when=60+",
    ]
    return pressed(Process(place, under=under, train_every=3600))


def no_disk(quick):
    (one, full_held), (other, failing_held) = full(quick), failing(quick)
    return (
        "503, never an answer; room heals a full disk, a restart one that failed",
        f"full: {one}; fsync error: {other}",
        full_held and failing_held,
    )
