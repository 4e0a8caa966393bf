"""Named seed streams and keyed draws: every random number in evenhand can be traced to one seed and
a name.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


class KeyedHash:
    """HMAC-SHA256 under one key, which is absorbed once: H(key ^ opad | H(key ^ ipad | message)).

    `hmac` absorbs it again for every message, which takes three times as long.
    """

    def __init__(self, key: bytes) -> None:
        padded = (key if len(key) <= 64 else hashlib.sha256(key).digest()).ljust(64, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in padded))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in padded))

    def __call__(self, message: bytes) -> bytes:
        """The 32 bytes of `message`."""
        inner = self._inner.copy()
        outer = self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        return outer.digest()


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


def keyed_uniform(secret: bytes | KeyedHash, *parts: str) -> float:
    """A number in [0, 1) that only the holder of a secret can predict.

    Anyone who is shown the secret can recompute it.

    Parameters
    ----------
    secret : bytes or KeyedHash
        The key; absorbed already, if many numbers are drawn by it.
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
    keyed = KeyedHash(secret) if isinstance(secret, bytes) else secret
    message = b"".join([len(part).to_bytes(4, "big") + part for part in map(str.encode, parts)])
    return (int.from_bytes(keyed(message)[:8], "big") >> 11) / 2**53


def uniform_by_row(key: bytes, rows: Iterable[bytes]) -> NDArray[np.float64]:
    """A number in [0, 1) for each row, by what it holds and by how many equal rows came before it.

    u_i = first 53 bits of H(key, row_i, k_i) / 2^53,   k_i = #{j < i : row_j = row_i}

    The numbers of different (row, k) are independent draws. A row keeps its number whatever the
    other rows are and in whichever order they come; equal rows, which nobody can tell apart,
    exchange theirs at most. Without k_i equal rows would share one number: a mixture would then be
    one deterministic rule, and its gap not the mixture's, however many people there are.

    Parameters
    ----------
    key : bytes
        At most 64; another key gives other numbers.
    rows : iterable of bytes
        What each row holds.

    Returns
    -------
    array of float
        One number per row.

    Examples
    --------
    >>> a, b, again = uniform_by_row(b"key", [b"a", b"b", b"a"]).tolist()
    >>> a == again, [b, a] == uniform_by_row(b"key", [b"b", b"a"]).tolist()
    (False, True)
    """
    copies: Counter[bytes] = Counter()
    numbers = []
    for row in rows:
        message = copies[row].to_bytes(8, "big") + row
        copies[row] += 1
        digest = hashlib.blake2b(message, digest_size=8, key=key).digest()
        numbers.append((int.from_bytes(digest, "big") >> 11) / 2**53)
    return np.array(numbers)
