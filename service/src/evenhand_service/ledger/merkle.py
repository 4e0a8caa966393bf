"""The proof for an applicant that a decision is in the ledger: the row opened, and the path from it
to the signed root of a Merkle tree over the rows of the chain (RFC 6962). Why there is a tree:
docs/decisions/0020-a-tree-for-proofs.md.

    leaf n = SHA-256(0x00 | hash of row n + 1),   node = SHA-256(0x01 | left | right)

The tree follows from the chain. It is computed when somebody asks for a proof, and kept nowhere.
How a proof is checked stands in `standalone_verifier`.
"""

import json
from typing import TYPE_CHECKING, Any

from evenhand.canonical import canonical
from evenhand.contracts import Json
from evenhand_service.ledger.chain import read_head, row_hashes
from evenhand_service.ledger.decision_draw import DECISIONS_BY_KEY, StoredDecision, key_digest
from evenhand_service.ledger.refusals import Damaged
from evenhand_service.ledger.standalone_verifier import GENESIS, check_proof, leaf_hash, node_hash

if TYPE_CHECKING:
    from evenhand_service.ledger.ledger import Ledger

PROOF_FORMAT = "evenhand proof 1"


def root_and_path(leaves: list[bytes], index: int) -> tuple[bytes, list[bytes]]:
    """The root over all leaves, and the nodes beside the way to it from one of them.

    A node without a neighbour rises as it is, which gives the tree of RFC 6962, section 2.1.
    """
    level = leaves
    path = []
    while len(level) > 1:
        beside = index ^ 1
        if beside < len(level):
            path.append(level[beside])
        above = [node_hash(*pair) for pair in zip(level[::2], level[1::2], strict=False)]
        level = above + level[2 * len(above) :]
        index = index >> 1
    return level[0], path


def proof_of_decision(ledger: "Ledger", key: str) -> Json:
    """The proof that a decision is in the ledger, for the person whom it is about.

    It reads the whole chain. Nothing is signed unless its rows lead to the head that the keyring
    has sealed (Tampered).

    Parameters
    ----------
    ledger : Ledger
        The ledger.
    key : str
        That of the application.

    Returns
    -------
    dict
        What `standalone_verifier --proof` checks: the row with the person's own fields opened, the
        path, and the signed root.
    """
    seq = ledger.find(key).drawn.seq
    keyring = ledger.keyring
    with ledger.store.reader.connect() as connection, connection.begin():
        ledger.require_chain(0, connection)
        size = read_head(connection).seq
        hashes = row_hashes(connection, 0, size)
        mine = {"among": [key_digest(keyring, key)]}
        stored = StoredDecision._make(connection.execute(DECISIONS_BY_KEY, mine).one())
    leaves = [leaf_hash(hashes[row]) for row in range(1, size + 1)]
    root, path = root_and_path(leaves, seq - 1)
    signed: Json = {"ledger": ledger.id, "size": size, "root": root.hex()}
    signature = keyring.sign_bytes(canonical(signed).encode()).hex()
    _, opened = stored.opened(keyring)
    row: Json = {"seq": seq, "kind": "decision", "at": stored.at, "body": json.loads(stored.body)}
    proof: dict[str, Any] = {
        "format": PROOF_FORMAT,
        "row": {**row, "open": {name: opened.proof(name) for name in opened.fields}},
        "previous": hashes.get(seq - 1, GENESIS).hex(),
        "path": [part.hex() for part in path],
        "root": {**signed, "public_key": keyring.public_key, "signature": signature},
    }
    wrong = check_proof(proof, keyring.public_key)
    if wrong:
        raise Damaged(
            f"the proof does not hold: {wrong[0]}.", hint="verify the ledger, then its witnesses."
        )
    return proof
