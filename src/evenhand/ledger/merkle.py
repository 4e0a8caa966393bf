"""The Merkle tree over the rows of the chain (RFC 6962), its signed checkpoints (C2SP
tlog-checkpoint), and proofs that can be handed to an applicant.

    leaf n = SHA-256(0x00 | hash of row n + 1),   node = SHA-256(0x01 | left | right)

Nothing is computed while a decision is made. Nodes over 256, 256^2, ... rows are kept in the
database as they become complete, so a new checkpoint reads the rows since the last one, and a proof
a few hundred hashes. How a proof is checked stands in `standalone_verifier`.
"""

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, select

from evenhand.contracts import Json
from evenhand.ledger.chain import read_head, row_hashes
from evenhand.ledger.database import TREE
from evenhand.ledger.decision_draw import DECISIONS_BY_KEY, StoredDecision, key_digest
from evenhand.ledger.keyring import Keyring
from evenhand.ledger.refusals import Damaged, Invalid
from evenhand.ledger.standalone_verifier import Note, check_proof, key_id, leaf_hash, node_hash

if TYPE_CHECKING:
    from evenhand.ledger.ledger import Ledger

STEP = 8
"""Heights between nodes that are kept: 2^8 children each."""
PROOF_FORMAT = "evenhand proof 1"


def origin(ledger: str) -> str:
    """The name of a ledger's tree, which is also that of its key."""
    return f"evenhand/ledger/{ledger}"


def folded(hashes: list[bytes]) -> bytes:
    """The root of a complete subtree."""
    while len(hashes) > 1:
        pairs = zip(hashes[::2], hashes[1::2], strict=True)
        hashes = [node_hash(left, right) for left, right in pairs]
    return hashes[0]


class MerkleFrontier:
    """The root of a tree that grows leaf by leaf, from the roots of its complete subtrees."""

    def __init__(self) -> None:
        self.size, self._peaks = 0, list[bytes]()

    def add(self, row_hash: bytes) -> None:
        """One more row."""
        self._peaks.append(leaf_hash(row_hash))
        self.size += 1
        number = self.size
        while not number & 1:
            right, left = self._peaks.pop(), self._peaks.pop()
            self._peaks.append(node_hash(left, right))
            number >>= 1

    def root(self) -> bytes:
        """The root of all rows so far; there is at least one."""
        found = self._peaks[-1]
        for peak in reversed(self._peaks[:-1]):
            found = node_hash(peak, found)
        return found


@dataclass
class MerkleTree:
    """The tree of one ledger.

    `extend` keeps the nodes that have become complete, and is called before each checkpoint.
    """

    ledger: "Ledger"

    def extend(self) -> int:
        """Keep what has become complete; how many rows the chain has."""
        with self.ledger.store.reader.connect() as connection:
            reading = _Reading(connection, self.ledger.keyring)
            size, new = read_head(connection).seq, []
            for height in range(STEP, max(size, 1).bit_length(), STEP):
                kept = select(TREE.c.place).where(TREE.c.height == height)
                last = connection.execute(kept.order_by(TREE.c.place.desc()).limit(1)).scalar()
                for place in range(0 if last is None else last + 1, size >> height):
                    reading.known[height, place] = found = reading.complete(height, place)
                    new.append(
                        (height, place, found, _seal(self.ledger.keyring, height, place, found))
                    )
        if new:
            self.ledger.keep_nodes(new)
        return size

    def checkpoint(self, size: int | None = None) -> str:
        """The signed note of the tree over the first `size` rows, or all."""
        rows = self.extend() if size is None else size
        with self.ledger.store.reader.connect() as connection:
            reading = _Reading(connection, self.ledger.keyring)
            if not 0 < rows <= read_head(connection).seq:
                raise Invalid(f"there is no checkpoint over {rows} rows; the chain has other rows.")
            root = reading.root(0, rows)
        name, key = origin(self.ledger.id), bytes.fromhex(self.ledger.keyring.public_key)
        text = f"{name}\n{rows}\n{base64.b64encode(root).decode()}\n"
        signature = key_id(name, 1, key) + self.ledger.keyring.sign_bytes(text.encode())
        return f"{text}\n\u2014 {name} {base64.b64encode(signature).decode()}\n"

    def inclusion(self, seq: int, size: int) -> list[bytes]:
        """The path from row `seq` to the root over the first `size` rows."""
        with self.ledger.store.reader.connect() as connection:
            reading = _Reading(connection, self.ledger.keyring)
            low, high, path = 0, size, list[bytes]()
            while high - low > 1:
                middle = low + (1 << (high - low - 1).bit_length() - 1)
                if seq - 1 < middle:
                    path.append(reading.root(middle, high))
                    high = middle
                else:
                    path.append(reading.root(low, middle))
                    low = middle
        return path[::-1]

    def consistency(self, old: int, size: int) -> list[bytes]:
        """The proof that the tree over `size` rows begins with the one over `old` rows."""
        if not 0 <= old <= size:
            raise Invalid(f"a tree over {size} rows does not begin with one over {old}.")
        if old in (0, size):
            return []
        with self.ledger.store.reader.connect() as connection:
            reading = _Reading(connection, self.ledger.keyring)

            def part(low: int, high: int, whole: bool) -> list[bytes]:
                if old == high:
                    return [] if whole else [reading.root(low, high)]
                middle = low + (1 << (high - low - 1).bit_length() - 1)
                if old <= middle:
                    return [*part(low, middle, whole), reading.root(middle, high)]
                return [*part(middle, high, False), reading.root(low, middle)]

            return part(0, size, True)


class _Reading:
    """Subtrees as one connection sees them."""

    def __init__(self, connection: Connection, keyring: Keyring) -> None:
        self.connection, self.keyring = connection, keyring
        self.known: dict[tuple[int, int], bytes] = {}

    def root(self, low: int, high: int) -> bytes:
        """The root over rows low + 1 .. high; `low` is a multiple of the next power of two."""
        size = high - low
        if size & (size - 1) == 0:
            height = size.bit_length() - 1
            return self.complete(height, low >> height)
        middle = low + (1 << (size - 1).bit_length() - 1)
        return node_hash(self.root(low, middle), self.root(middle, high))

    def complete(self, height: int, place: int) -> bytes:
        """The root of a complete subtree, from the nodes that are kept below it."""
        if (height, place) in self.known:
            return self.known[height, place]
        if height and height % STEP == 0:
            found = self._kept(height, place, 1)
            if found:
                return found[0]
        # what is not there yet is computed from the kept height below it
        kept = (height - 1) // STEP * STEP if height else 0
        number = 1 << (height - kept)
        if kept == 0:
            return folded(self._leaves(place << height, 1 << height))
        below = self._kept(kept, place * number, number)
        if len(below) < number:
            below = [self.complete(kept, place * number + i) for i in range(number)]
        return folded(below)

    def _kept(self, height: int, first: int, number: int) -> list[bytes]:
        c = TREE.c
        asked = select(c.place, c.hash, c.seal).where(c.height == height, c.place >= first)
        rows = self.connection.execute(asked.where(c.place < first + number).order_by(c.place))
        found = {row.place: (bytes(row.hash), bytes(row.seal)) for row in rows}
        hashes = []
        for place in range(first, first + number):
            if (height, place) in self.known:
                hashes.append(self.known[height, place])
            elif place in found:
                digest, seal = found[place]
                if seal != _seal(self.keyring, height, place, digest):
                    raise Damaged(
                        f"node {place} of height {height} of the tree was not kept by the holder "
                        "of the keyring.",
                        hint="verify the ledger, then empty the table tree: it is computed again.",
                    )
                hashes.append(digest)
        return hashes

    def _leaves(self, first: int, number: int) -> list[bytes]:
        hashes = row_hashes(self.connection, first, first + number)
        if len(hashes) < number:
            raise Damaged(
                f"rows {first + 1} to {first + number} are not all in the chain.",
                hint="verify the ledger (evenhand audit verify).",
            )
        return [leaf_hash(hashes[seq]) for seq in range(first + 1, first + number + 1)]


def _seal(keyring: Keyring, height: int, place: int, digest: bytes) -> bytes:
    return keyring.digest("tree", str(height), str(place), digest.hex())


def proof_of_decision(ledger: "Ledger", tenant: str, key: str, since: str | None = None) -> Json:
    """The proof that a decision is in the ledger, for the person whom it is about.

    Parameters
    ----------
    ledger : Ledger
        The ledger.
    tenant, key : str
        Those of the application.
    since : str, optional
        An earlier checkpoint: the proof shows that the tree of now begins with its tree.

    Returns
    -------
    dict
        What `standalone_verifier --proof` checks: the row with the person's own fields opened, the
        path, and a signed checkpoint.
    """
    seq = ledger.find(tenant, key).drawn.seq
    tree = MerkleTree(ledger)
    checkpoint = tree.checkpoint()
    note = Note.parse(checkpoint)
    path = tree.inclusion(seq, note.size)
    with ledger.store.reader.connect() as connection:
        mine = {"among": [key_digest(ledger.keyring, tenant, key)]}
        stored = StoredDecision._make(connection.execute(DECISIONS_BY_KEY, mine).one())
        previous = row_hashes(connection, seq - 2, seq - 1)[seq - 1] if seq > 1 else bytes(32)
    _, opened = stored.opened(ledger.keyring)
    row: Json = {"seq": seq, "kind": "decision", "at": stored.at, "body": json.loads(stored.body)}
    proof: dict[str, Any] = {
        "format": PROOF_FORMAT,
        "ledger": ledger.id,
        "public_key": ledger.keyring.public_key,
        "row": {**row, "open": {name: opened.proof(name) for name in opened.fields}},
        "previous": previous.hex(),
        "path": [base64.b64encode(part).decode() for part in path],
        "checkpoint": checkpoint,
    }
    if since is not None:
        way = tree.consistency(Note.parse(since).size, note.size)
        parts = [base64.b64encode(part).decode() for part in way]
        proof["since"] = {"checkpoint": since, "path": parts}
    wrong = check_proof(proof, ledger.keyring.public_key)
    if wrong:
        raise Damaged(
            f"the proof does not hold: {wrong[0]}.", hint="verify the ledger, then its witnesses."
        )
    return proof
