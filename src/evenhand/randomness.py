"""Named seed streams and keyed draws: every random number in evenhand can be traced to one seed and
a name.
"""

import hashlib
import hmac

import numpy as np


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """The generator with a name: streams with different names are independent, equal ones equal.

    Parameters
    ----------
    seed : int
        The seed of the whole run.
    *names : str or int
        The name of the stream.

    Returns
    -------
    numpy.random.Generator
        A fresh generator.

    Examples
    --------
    >>> float(stream(7, "coins", 3).random()) == float(stream(7, "coins", 3).random())
    True
    >>> float(stream(7, "coins", 3).random()) == float(stream(7, "coins", 4).random())
    False
    """
    digest = hashlib.sha256("\x1f".join(str(name) for name in names).encode()).digest()
    words = np.frombuffer(digest, dtype=np.uint32)
    return np.random.default_rng(np.random.SeedSequence([seed, *(int(word) for word in words)]))


def keyed_uniform(secret: bytes, *parts: str) -> float:
    """A number in [0, 1) that only the holder of a secret can predict.

    Everybody who is shown the secret can recompute it.

    Parameters
    ----------
    secret : bytes
        The key.
    *parts : str
        What the number belongs to.

    Returns
    -------
    float
        The first 53 bits of HMAC-SHA256(secret, parts), each part preceded by its length so that no
        two lists of parts collide.

    Examples
    --------
    >>> keyed_uniform(b"secret", "a", "b") == keyed_uniform(b"secret", "a", "b")
    True
    """
    message = b"".join([len(part).to_bytes(4, "big") + part for part in map(str.encode, parts)])
    digest = hmac.digest(secret, message, "sha256")
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53
