"""What the quick tier has instead of a clock: work that is counted, memory that is measured, and
events that are waited for.
"""

import gc
import sys
import time
import tracemalloc

PATIENCE = 300.0
"""Seconds after which waiting for an event is given up as hopeless.

No claim depends on them: no test may need them in order to pass.
"""


def calls(action, *arguments):
    """How many functions, Python's and C's, `action` calls in this thread: the same number on a
    fast machine and on a slow one.
    """
    made, before = 0, sys.getprofile()

    def count(frame, event, argument):
        nonlocal made
        made += event in ("call", "c_call")

    gc.collect()
    gc.disable()  # what others left behind is not this action's work
    sys.setprofile(count)
    try:
        action(*arguments)
    finally:
        sys.setprofile(before)
        gc.enable()
    return made


def peak(action, *arguments):
    """The most bytes that `action` holds at once, numpy's included."""
    gc.collect()
    tracemalloc.start()
    try:
        action(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def until(happened, what):
    """What `happened()` returns as soon as that is true; it is asked again and again."""
    given_up = time.monotonic() + PATIENCE
    while not (found := happened()):
        if time.monotonic() > given_up:
            raise AssertionError(f"{what} did not happen")
        time.sleep(0.002)
    return found
