"""The Merkle tree over the rows of the chain (RFC 6962), its signed root, and proofs that can be
handed to an applicant. Why there is a tree: docs/decisions/0020-a-tree-for-proofs.md.

    leaf n = SHA-256(0x00 | hash of row n + 1),   node = SHA-256(0x01 | left | right)

Nothing is computed while a decision is made. Nodes over 256, 256^2, ... rows are kept in the
database as they become complete, so a new root reads the rows since the last one, and a proof a
few hundred hashes. How a proof is checked stands in `standalone_verifier`.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, select

from evenhand.canonical import canonical
from evenhand.contracts import Json
from evenhand_service.ledger.chain import read_head, row_hashes
from evenhand_service.ledger.database import TREE
from evenhand_service.ledger.decision_draw import DECISIONS_BY_KEY, StoredDecision, key_digest
from evenhand_service.ledger.keyring import Keyring
from evenhand_service.ledger.refusals import Damaged, Invalid
from evenhand_service.ledger.standalone_verifier import check_proof, leaf_hash, node_hash

if TYPE_CHECKING:
    from evenhand_service.ledger.ledger import Ledger

STEP = 8
"""Heights between nodes that are kept: 2^8 children each."""
PROOF_FORMAT = "evenhand proof 1"


def folded(hashes: list[bytes]) -> bytes:
    """The root of a complete subtree."""
    while len(hashes) > 1:
        pairs = zip(hashes[::2], hashes[1::2], strict=True)
        hashes = [node_hash(left, right) for left, right in pairs]
    return hashes[0]


class MerkleFrontier:
    """The root of a tree that grows leaf by leaf, from the roots of its complete subtrees."""

    def __init__(self) -> None:
        self.size = 0
        self._peaks = list[bytes]()

    def add(self, row_hash: bytes) -> None:
        """One more row."""
        self._peaks.append(leaf_hash(row_hash))
        self.size += 1
        number = self.size
        while not number & 1:
            right = self._peaks.pop()
            left = self._peaks.pop()
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

    `extend` keeps the nodes that have become complete, and is called before each root is signed.
    """

    ledger: "Ledger"

    def extend(self) -> int:
        """Keep what has become complete; how many rows the chain has.

        The rows since the last node that is kept must lead to the sealed head (Tampered): a root is
        signed over no hash that somebody else has written. Nodes that are kept are sealed.
        """
        with self.ledger.store.reader.connect() as connection:
            self._require_chain(connection)
            reading = _Reading(connection, self.ledger.keyring)
            size = read_head(connection).seq
            new = []
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

    def signed_root(self, size: int | None = None) -> Json:
        """The root over the first `size` rows, or all, signed by the ledger's key."""
        rows = self.extend() if size is None else size
        with self.ledger.store.reader.connect() as connection:
            self._require_chain(connection)
            reading = _Reading(connection, self.ledger.keyring)
            if not 0 < rows <= read_head(connection).seq:
                raise Invalid(f"there is no root over {rows} rows; the chain has other rows.")
            root = reading.root(0, rows)
        document: Json = {"ledger": self.ledger.id, "size": rows, "root": root.hex()}
        keyring = self.ledger.keyring
        signature = keyring.sign_bytes(canonical(document).encode()).hex()
        return {**document, "public_key": keyring.public_key, "signature": signature}

    def _require_chain(self, connection: Connection) -> None:
        """Tampered unless the rows after the last node that is kept lead to the sealed head."""
        kept = select(TREE.c.place).where(TREE.c.height == STEP)
        newest = connection.execute(kept.order_by(TREE.c.place.desc()).limit(1)).scalar()
        after = 0 if newest is None else (newest + 1) << STEP
        last = read_head(connection).seq
        # a node beyond the end is of a chain that was longer; its seal is looked at below
        self.ledger.require_chain(after if after <= last else 0, connection)

    def inclusion(self, seq: int, size: int) -> list[bytes]:
        """The path from row `seq` to the root over the first `size` rows."""
        with self.ledger.store.reader.connect() as connection:
            reading = _Reading(connection, self.ledger.keyring)
            low = 0
            high = size
            path = list[bytes]()
            while high - low > 1:
                middle = low + (1 << (high - low - 1).bit_length() - 1)
                if seq - 1 < middle:
                    path.append(reading.root(middle, high))
                    high = middle
                else:
                    path.append(reading.root(low, middle))
                    low = middle
        return path[::-1]


class _Reading:
    """Subtrees as one connection sees them."""

    def __init__(self, connection: Connection, keyring: Keyring) -> None:
        self.connection = connection
        self.keyring = keyring
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


def proof_of_decision(ledger: "Ledger", key: str) -> Json:
    """The proof that a decision is in the ledger, for the person whom it is about.

    Parameters
    ----------
    ledger : Ledger
        The ledger.
    key : str
        Those of the application.

    Returns
    -------
    dict
        What `standalone_verifier --proof` checks: the row with the person's own fields opened, the
        path, and the signed root.
    """
    seq = ledger.find(key).drawn.seq
    tree = MerkleTree(ledger)
    root = tree.signed_root()
    path = tree.inclusion(seq, root["size"])
    with ledger.store.reader.connect() as connection:
        mine = {"among": [key_digest(ledger.keyring, key)]}
        stored = StoredDecision._make(connection.execute(DECISIONS_BY_KEY, mine).one())
        previous = row_hashes(connection, seq - 2, seq - 1)[seq - 1] if seq > 1 else bytes(32)
    _, opened = stored.opened(ledger.keyring)
    row: Json = {"seq": seq, "kind": "decision", "at": stored.at, "body": json.loads(stored.body)}
    proof: dict[str, Any] = {
        "format": PROOF_FORMAT,
        "row": {**row, "open": {name: opened.proof(name) for name in opened.fields}},
        "previous": previous.hex(),
        "path": [part.hex() for part in path],
        "root": root,
    }
    wrong = check_proof(proof, ledger.keyring.public_key)
    if wrong:
        raise Damaged(
            f"the proof does not hold: {wrong[0]}.", hint="verify the ledger, then its witnesses."
        )
    return proof
