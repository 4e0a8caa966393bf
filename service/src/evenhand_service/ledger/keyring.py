"""The keyring: one root of 32 random bytes, kept outside of the database, from which every lasting
secret follows; and how personal fields are sealed.

    secret of a window   derived(root, "window", ledger, window)
                         the draws; so a restored ledger meets the same U again
    pepper               derived(root, "pepper")
                         digests of keys and people: lookups without their names
    wrapping key         derived(root, "wrap")
                         wraps the key of each person, which is random and can be destroyed
    signing key          derived(root, "sign")
                         Ed25519, for heads and policies

`derived` is HKDF-SHA256 (RFC 5869) without a salt, of 32 bytes; its info is "evenhand 1" and the
names, with the byte 0x1f between them.

Whoever holds the root can predict every draw to come: it belongs to the service alone (mode 0600),
and to nobody's backup of the data.
"""

import base64
import hashlib
import json
import os
import secrets
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from evenhand.canonical import canonical
from evenhand.contracts import Json
from evenhand.randomness import KeyedHash
from evenhand_service.ledger.refusals import Damaged, Invalid

Entropy = Callable[[int], bytes]
_FORMAT = "evenhand keyring 1"
_NONCE = 12
_SALT = 16


def derived(root: bytes, *names: str) -> bytes:
    """32 bytes that follow from a root for one purpose: HKDF-SHA256 (RFC 5869)."""
    info = "\x1f".join(("evenhand 1", *names)).encode()
    return HKDF(hashes.SHA256(), length=32, salt=None, info=info).derive(root)


class Reserve:
    """Random bytes that are fetched in large pieces, so that a draw does not call the kernel four
    times; each byte is given out once.
    """

    def __init__(self, source: Entropy, piece: int = 16384) -> None:
        self._source = source
        self._piece = piece
        self._bytes = b""
        self._place = 0

    def __call__(self, size: int) -> bytes:
        """The next `size` bytes; for one thread alone."""
        if self._place + size > len(self._bytes):
            self._bytes = self._source(max(self._piece, size))
            self._place = 0
        start = self._place
        self._place = self._place + size
        return self._bytes[start : self._place]


class Keyring:
    """The root and what follows from it.

    Parameters
    ----------
    root : bytes
        32 random bytes. Whoever has them can predict every draw.
    newer : sequence of bytes
        Roots that came or come after it (`Ledger.rotate_root`). The first one stays the ledger's
        name: its signing key and its pepper do not change.

    Raises
    ------
    Invalid
        If the root has another length.

    Examples
    --------
    >>> keyring = Keyring.generate()
    >>> signature = keyring.sign({"a": 1})
    >>> verify_signature(keyring.public_key, {"a": 1}, signature)
    """

    def __init__(self, root: bytes, newer: Sequence[bytes] = ()) -> None:
        for one in (root, *newer):
            if len(one) != 32:
                raise Invalid(
                    f"the root of a keyring has {len(one)} bytes; it needs 32.",
                    hint="use Keyring.generate().",
                )
        self._root = root
        self._newer = tuple(newer)
        self.source: str | None = None
        """Where it was read from, and where newer roots will be."""
        self.active = 0
        """Which root wraps, seals and makes the secrets of new windows; the chain says so."""
        self.peppered = KeyedHash(derived(root, "pepper"))
        """What `digest` applies to its parts, for places that join thousands of them a second."""
        self._sealing = [KeyedHash(derived(one, "pepper")) for one in (root, *newer)]

    def __repr__(self) -> str:
        return f"Keyring(public_key={self.public_key})"

    @classmethod
    def generate(cls) -> "Keyring":
        """Make a keyring with a new root.

        Returns
        -------
        Keyring
            It is nowhere stored: see `save`.
        """
        return cls(secrets.token_bytes(32))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Keyring":
        """Read what `save` wrote.

        Parameters
        ----------
        path : path-like
            The file.

        Returns
        -------
        Keyring
            The keyring.

        Raises
        ------
        Invalid
            If the file is no keyring.
        """
        with _refusing(f"{path} is no keyring.", "Keyring.generate().save(path) makes one."):
            document = json.loads(Path(path).read_text())
            if document["format"] != _FORMAT:
                raise ValueError
            made = cls._of_document(document)
            made.source = os.fspath(path)
            return made

    @classmethod
    def from_source(cls, source: str) -> "Keyring":
        """Take the root from a file, a variable of the environment, or a command that prints it.

        Parameters
        ----------
        source : str
            The path of a file, "env:NAME", or "command:WORDS" (without a shell). What is found is
            what `save` wrote, or the root as 64 hexadecimal digits or in Base64.

        Returns
        -------
        Keyring
            The keyring.

        Raises
        ------
        Invalid
            If there is nothing, or it is no root. The message never repeats it.
        """
        kind, _, rest = source.partition(":")
        if kind == "env" and rest not in os.environ:
            raise Invalid(
                f"the variable {rest} of the environment is to hold the root key, and is not set.",
                hint="set it, or give keyring = another source.",
            )
        if kind == "env":
            return cls._of_text(os.environ[rest], f"the variable {rest}")
        if kind == "command":
            try:
                done = subprocess.run(
                    shlex.split(rest), capture_output=True, text=True, check=True, timeout=60
                )
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                raise Invalid(
                    f"the command for the root key failed ({type(error).__name__}).",
                    hint="run it by hand as the service's user.",
                ) from None
            made = cls._of_text(done.stdout, "what the command for the root key printed")
            made.source = source
            return made
        return cls.load(source)

    @classmethod
    def _of_text(cls, text: str, what: str) -> "Keyring":
        text = text.strip()
        with _refusing(f"{what} is no root key.", "it has 32 bytes, in hexadecimal or Base64."):
            if text.startswith("{"):
                return cls._of_document(json.loads(text))
            if len(text) == 64:
                return cls(bytes.fromhex(text))
            return cls(base64.b64decode(text, validate=True))

    @classmethod
    def _of_document(cls, document: Json) -> "Keyring":
        made = cls(
            bytes.fromhex(document["root"]),
            [bytes.fromhex(root) for root in document.get("newer", [])],
        )
        made.active = int(document.get("active", 0))
        if not 0 <= made.active < made.roots:
            raise ValueError
        return made

    @property
    def roots(self) -> int:
        """How many roots it holds."""
        return 1 + len(self._newer)

    def reread(self) -> bool:
        """Look whether newer roots were added where this keyring was read from, and take them up.

        Returns
        -------
        bool
            Whether there were some.
        """
        if self.source is None:
            return False
        try:
            found = Keyring.from_source(self.source)
        except (Invalid, OSError):
            return False
        known = len(self._newer)
        if found._root != self._root or found._newer[:known] != self._newer:
            return False
        added = found._newer[known:]
        if added:
            self._sealing += [KeyedHash(derived(one, "pepper")) for one in added]
            self.__dict__.pop("_wrapping", None)
            self._newer = found._newer
        return bool(added)

    def with_new_root(self) -> "Keyring":
        """Make a keyring that holds one more root, which nothing uses yet.

        Returns
        -------
        Keyring
            It is nowhere stored: see `save`.
        """
        made = Keyring(self._root, (*self._newer, secrets.token_bytes(32)))
        made.active = self.active
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the root into a new file that only its owner can read.

        Parameters
        ----------
        path : path-like
            The file.

        Raises
        ------
        FileExistsError
            If it exists: a keyring is never replaced.
        """
        beside = Path(path).with_name(f".{Path(path).name}.{secrets.token_hex(4)}.tmp")
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "w") as file:
                document: Json = {"format": _FORMAT, "root": self._root.hex()}
                if self._newer:
                    document["newer"] = [root.hex() for root in self._newer]
                if self.active:  # an older root seals nothing any more, whatever the chain says
                    document["active"] = self.active
                file.write(canonical(document))
                file.flush()
                os.fsync(file.fileno())
            os.link(beside, path)  # whole or not at all, and never over another one
        finally:
            beside.unlink()

    # draws and lookups

    def window_secret(self, ledger: str, window: str) -> bytes:
        """Give the secret of one window of one ledger.

        Parameters
        ----------
        ledger : str
            The id of the ledger.
        window : str
            The name of the window.

        Returns
        -------
        bytes
            32 bytes.
        """
        # a window that was opened under a newer root says so in its name: w690r1
        root = (self._root, *self._newer)[root_of_window(window)]
        return derived(root, "window", ledger, window)

    def digest(self, *parts: str) -> bytes:
        """Give a keyed fingerprint.

        Equal parts have equal fingerprints, and nothing can be read from one without the keyring.

        Parameters
        ----------
        *parts : str
            Printable texts, so that no part holds the separator and no two lists of equal length
            collide.

        Returns
        -------
        bytes
            32 bytes.
        """
        return self.peppered("\x1f".join(parts).encode())

    def seal_of_root(self, root: int, *parts: str) -> bytes:
        """Seal parts under one root, so that whoever has an older one alone cannot.

        Parameters
        ----------
        root : int
            The number of the root.
        *parts : str
            As in `digest`, which this is for root 0.

        Returns
        -------
        bytes
            32 bytes.
        """
        return self._sealing[root]("\x1f".join(parts).encode())

    def head_seal(self, seq: int, digest: bytes, root: int | None = None) -> bytes:
        """Seal the end of the chain, so that nobody who only has the database can move it.

        Parameters
        ----------
        seq : int
            The number of the last row.
        digest : bytes
            Its hash.
        root : int, optional
            Which root seals it; without it, the active one.

        Returns
        -------
        bytes
            HMAC(pepper of the root, head).
        """
        sealing = self._sealing[self.active if root is None else root]
        return sealing("\x1f".join(("head", str(seq), digest.hex())).encode())

    def basis_seal(
        self,
        seq: int,
        digest: bytes,
        basis: Sequence[int],
        control: bytes,
        root: int | None = None,
    ) -> bytes:
        """Seal what the end of the chain says of the rows that decide.

        Parameters
        ----------
        seq : int
            The number of the last row.
        digest : bytes
            Its hash.
        basis : sequence of int
            The newest rows that changed what decides, and who may ask.
        control : bytes
            The digest of all events and policies.
        root : int, optional
            Which root seals it; without it, the active one.

        Returns
        -------
        bytes
            HMAC(pepper of the root, head, basis and control).
        """
        sealing = self._sealing[self.active if root is None else root]
        parts = ("basis", str(seq), digest.hex(), *map(str, basis), control.hex())
        return sealing("\x1f".join(parts).encode())

    def sealed_head(self, seq: int, digest: bytes, seal: bytes) -> bool:
        """Say whether this keyring sealed the end of the chain.

        If a newer root did, that one becomes the active one: another replica has rotated.

        Parameters
        ----------
        seq : int
            The number of the last row.
        digest : bytes
            Its hash.
        seal : bytes
            Its seal.

        Returns
        -------
        bool
            False: it was sealed by nobody, or by an older root than the active one.
        """
        first = self.active
        while True:
            for root in range(first, self.roots):
                if seal == self.head_seal(seq, digest, root):
                    self.active = root
                    return True
            first = self.roots
            if not self.reread():  # a root that was added since this process started
                return False

    # sealing

    @cached_property
    def _wrapping(self) -> list[AESGCM]:
        roots = (self._root, *self._newer)
        return [AESGCM(derived(root, "wrap")) for root in roots]

    def new_key(self, entropy: Entropy, whose: bytes) -> tuple[bytes, bytes]:
        """Make the key of a person.

        Parameters
        ----------
        entropy : callable
            Gives so many random bytes.
        whose : bytes
            By which the person is found; see `wrap`.

        Returns
        -------
        (bytes, bytes)
            The key, and the same key wrapped.
        """
        random = entropy(32 + _NONCE)
        key = random[:32]
        nonce = random[32:]
        return key, nonce + self._wrapping[self.active].encrypt(nonce, key, whose)

    def wrap(self, key: bytes, entropy: Entropy, whose: bytes) -> bytes:
        """Seal the key of a person, bound to the person: AES-256-GCM, associated data = `whose`.

        Parameters
        ----------
        key : bytes
            The key.
        entropy : callable
            Gives so many random bytes.
        whose : bytes
            By which the person is found (`people.lookup`): under another one the key does not open,
            so nobody who can only write the database gives a person somebody else's.

        Returns
        -------
        bytes
            What `unwrap` opens.
        """
        nonce = entropy(_NONCE)
        return nonce + self._wrapping[self.active].encrypt(nonce, key, whose)

    def unwrap(self, wrapped: bytes, whose: bytes) -> bytes:
        """Open the key of a person.

        Parameters
        ----------
        wrapped : bytes
            What `wrap` gave.
        whose : bytes
            By which the person is found, as `wrap` was given it.

        Returns
        -------
        bytes
            The key.

        Raises
        ------
        Damaged
            If this keyring did not wrap it, or not for this person.
        """
        nonce = wrapped[:_NONCE]
        sealed = wrapped[_NONCE:]
        try:
            return self._wrapping[self.active].decrypt(nonce, sealed, whose)
        except (InvalidTag, ValueError):
            pass
        # another replica may have rotated, or not yet wrapped all people's keys anew
        ciphers = self._wrapping
        while ciphers:
            for cipher in ciphers:
                with suppress(InvalidTag, ValueError):
                    return cipher.decrypt(nonce, sealed, whose)
            known = self.roots
            ciphers = self._wrapping[known:] if self.reread() else []
        raise _does_not_open("the key of a person")

    # signing

    @cached_property
    def _signing(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(derived(self._root, "sign"))

    @cached_property
    def public_key(self) -> str:
        """The Ed25519 public key in hexadecimal: what auditors and replicas verify with."""
        return self._signing.public_key().public_bytes_raw().hex()

    def sign(self, document: Json) -> str:
        """Sign a document.

        Parameters
        ----------
        document : dict
            Anything that has a canonical text.

        Returns
        -------
        str
            Ed25519 over the canonical JSON, in hexadecimal.
        """
        return self.sign_bytes(canonical(document).encode()).hex()

    def sign_bytes(self, message: bytes) -> bytes:
        """Sign bytes as they are.

        Parameters
        ----------
        message : bytes
            What is signed.

        Returns
        -------
        bytes
            64 bytes, Ed25519.
        """
        return self._signing.sign(message)


def verify_signature(public_key: str, document: Json, signature: str) -> None:
    """Check that the holder of a key signed exactly this document.

    Parameters
    ----------
    public_key : str
        The public key, in hexadecimal.
    document : dict
        The document.
    signature : str
        The signature, in hexadecimal.

    Raises
    ------
    Damaged
        If it is not so.

    Examples
    --------
    >>> keyring = Keyring(bytes(32))
    >>> verify_signature(keyring.public_key, {"a": 2}, keyring.sign({"a": 1}))
    Traceback (most recent call last):
        ...
    evenhand_service.ledger.refusals.Damaged: a signature does not verify under the public key ...
    """
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
        key.verify(bytes.fromhex(signature), canonical(document).encode())
    except (InvalidSignature, ValueError):
        raise Damaged(
            f"a signature does not verify under the public key {public_key}.",
            hint="do not use what it signs.",
        ) from None


@contextmanager
def _refusing(what: str, hint: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError):
        raise Invalid(what, hint=hint) from None


def root_of_window(name: str) -> int:
    """The number of the root under which a window was opened, from its name."""
    _, _, number = name.partition("r")
    return int(number) if number.isdigit() else 0


def fingerprint(sealed: bytes) -> str:
    """SHA-256 of a sealed field: the chain notices its change without opening it."""
    return hashlib.sha256(sealed).hexdigest()


def _unsealed(cipher: AESGCM, sealed: bytes, what: str) -> bytes:
    try:
        return cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], None)
    except (InvalidTag, ValueError):
        raise _does_not_open(what) from None


def _does_not_open(what: str) -> Damaged:
    return Damaged(
        f"{what} does not open under this keyring.",
        hint="check that the keyring belongs to this ledger; if it does, the database was changed "
        "(evenhand audit verify --deep).",
    )


# Personal fields: as salted commitments in the chain, as sealed text beside it.
#
#     commit[name] = SHA-256(salt of the field | canonical value)
#
# The text {"fields": ..., "salts": ...} is sealed under the person's own key. When that key is
# destroyed, salts and values are gone, and the commitments say nothing any more. Each field has a
# salt of its own, so that one can be opened without the others.


class Sealed(NamedTuple):
    """What the chain keeps (`commit`, `fingerprint`) and what lies beside it (`data`)."""

    commit: dict[str, str]
    fingerprint: str
    data: bytes


def seal_fields(key: bytes, texts: dict[str, str], entropy: Entropy) -> Sealed:
    """Commit to each field, and seal all of them; `texts` are their canonical JSON, in the order of
    their names.
    """
    random = entropy(_SALT * len(texts))
    digits = random.hex()
    fields = []
    salts = []
    commit = {}
    start = 0
    for name, text in texts.items():
        end = start + _SALT
        fields.append(f'"{name}":{text}')
        salts.append(f'"{name}":"{digits[2 * start : 2 * end]}"')
        commit[name] = commitment(random[start:end], text)
        start = end
    plain = f'{{"fields":{{{",".join(fields)}}},"salts":{{{",".join(salts)}}}}}'
    # AES-256-GCM under the person's key: nonce | ciphertext
    nonce = entropy(_NONCE)
    data = nonce + AESGCM(key).encrypt(nonce, plain.encode(), None)
    return Sealed(commit, fingerprint(data), data)


def seal_decision(
    key: bytes, features: str, group: str, reply: str, who: str, entropy: Entropy
) -> tuple[str, str, bytes]:
    """`seal_fields` of the four fields of a decision, written out, in two thirds of the time: the
    members of `commit` as canonical JSON, the fingerprint, and the data.
    """
    random = entropy(4 * _SALT + _NONCE)
    sha256 = hashlib.sha256
    salts = random[:64].hex()
    commit = (
        f'"features":"{sha256(random[:16] + features.encode()).hexdigest()}",'
        f'"group":"{sha256(random[16:32] + group.encode()).hexdigest()}",'
        f'"reply":"{sha256(random[32:48] + reply.encode()).hexdigest()}",'
        f'"who":"{sha256(random[48:64] + who.encode()).hexdigest()}"'
    )
    plain = (
        f'{{"fields":{{"features":{features},"group":{group},"reply":{reply},"who":{who}}},'
        f'"salts":{{"features":"{salts[:32]}","group":"{salts[32:64]}",'
        f'"reply":"{salts[64:96]}","who":"{salts[96:]}"}}}}'
    )
    nonce = random[64:]
    data = nonce + AESGCM(key).encrypt(nonce, plain.encode(), None)
    return commit, sha256(data).hexdigest(), data


def commitment(salt: bytes, text: str) -> str:
    """SHA-256(salt of the field | canonical JSON of its value), in hexadecimal."""
    return hashlib.sha256(salt + text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Opened:
    """The fields in the clear, and the salts that prove them."""

    fields: Json
    salts: dict[str, str]

    def proof(self, name: str) -> Json:
        """One field with its salt, for an auditor."""
        return {"salt": self.salts[name], "value": self.fields[name]}

    def mismatches(self, commit: dict[str, str]) -> list[str]:
        """Fields that are not what was committed to."""
        computed = {
            name: commitment(bytes.fromhex(self.salts[name]), canonical(value))
            for name, value in self.fields.items()
        }
        names = sorted(computed.keys() | commit.keys())
        return [name for name in names if computed.get(name) != commit.get(name)]


def open_fields(key: bytes, data: bytes) -> Opened:
    """What `seal_fields` sealed."""
    document: Any = json.loads(_unsealed(AESGCM(key), data, "a sealed field"))
    try:
        return Opened(document["fields"], document["salts"])
    except (KeyError, TypeError):
        raise Damaged("a sealed field opens to something that this ledger did not write.") from None


def require_of_row(body: str, data: bytes) -> None:
    """Damaged unless sealed fields are those of a row of the chain: its body, in canonical JSON,
    names their fingerprint. Quotation marks inside of a canonical text are escaped, so
    `"sealed":"..."` stands in it only as a member.
    """
    if f'"sealed":"{fingerprint(data)}"' not in body:
        raise Damaged(
            "the sealed fields beside a row are not those that the chain names.",
            hint="the database was changed: evenhand audit verify --deep names the rows.",
        )


def open_row(keyring: Keyring, body: str, data: bytes, wrapped: bytes, whose: bytes) -> Opened:
    """The sealed fields beside a row of the chain: those that its body names, under the key that
    was wrapped for the person who is found by `whose`; else Damaged.
    """
    require_of_row(body, data)
    return open_fields(keyring.unwrap(wrapped, whose), data)


def seal_past(key: bytes, text: str, row_hash: bytes, entropy: Entropy) -> bytes:
    """Seal what stays here of an archived row under its person's own key, bound to the row by its
    hash: nonce | ciphertext.
    """
    nonce = entropy(_NONCE)
    return nonce + AESGCM(key).encrypt(nonce, text.encode(), b"archived" + row_hash)


def open_past(key: bytes, data: bytes, row_hash: bytes) -> Json:
    """What `seal_past` sealed, parsed; Damaged if it is another row's or another person's."""
    data = bytes(data)
    try:
        text = AESGCM(key).decrypt(data[:_NONCE], data[_NONCE:], b"archived" + row_hash)
    except (InvalidTag, ValueError):
        raise _does_not_open("what is sealed of an archived row") from None
    found: Json = json.loads(text)
    return found


def open_group(key: bytes, data: bytes) -> Any:
    """`open_fields(key, data).fields["group"]` in a third of the time: only this member is parsed.

    Quotation marks inside of a canonical text are escaped, so `"group":` stands in it only as the
    name of a member, and no other field has one of this name.
    """
    text = _unsealed(AESGCM(key), data, "a sealed field").decode()
    name = '"group":'
    place = text.find(name)
    if place < 0:
        raise Damaged("a sealed field opens to something that this ledger did not write.")
    return _value_at(text, place + len(name))[0]


_value_at = json.JSONDecoder().raw_decode
