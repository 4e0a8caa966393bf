"""The tree, its signed root and its proofs, against the definition of RFC 6962."""

import hashlib
import json
import subprocess
import sys

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from service.tests.ledger.helpers import KEYRING, decided, published

from evenhand_service.ledger import Damaged, Gone, NotFound
from evenhand_service.ledger import standalone_verifier as verifier
from evenhand_service.ledger.merkle import MerkleFrontier, MerkleTree, proof_of_decision


def defined(hashes):
    """MTH of RFC 6962, section 2.1, word by word."""
    if len(hashes) == 1:
        return hashlib.sha256(b"\0" + hashes[0]).digest()
    k = 1
    while k * 2 < len(hashes):
        k *= 2
    return hashlib.sha256(b"\1" + defined(hashes[:k]) + defined(hashes[k:])).digest()


def row_hashes(ledger):
    from evenhand_service.ledger.chain import chain_rows

    with ledger.store.reader.connect() as connection:
        return [bytes(row[-1]) for _, _, row in chain_rows(connection)]


@given(st.integers(1, 70))
@settings(max_examples=30, deadline=None)
def test_the_frontier_is_the_definition(size):
    hashes = [bytes([i]) * 32 for i in range(size)]
    frontier = MerkleFrontier()
    for one in hashes:
        frontier.add(one)
    assert frontier.root() == defined(hashes)


def test_every_proof_of_a_ledger_holds_and_no_other(ledger, policy):
    decided(ledger, policy, range(600))
    hashes, tree = row_hashes(ledger), MerkleTree(ledger)
    for size in (1, 2, 3, 255, 256, 257, 511, 512, 513, len(hashes)):
        document = tree.signed_root(size)
        root = bytes.fromhex(document["root"])
        assert (document["size"], root) == (size, defined(hashes[:size]))
        assert verifier.check_root(document, KEYRING.public_key)
        assert not verifier.check_root({**document, "size": size + 1}, KEYRING.public_key)
        for seq in {1, size, size // 2 or 1, min(size, 256), max(1, size - 1)}:
            path, leaf = tree.inclusion(seq, size), verifier.leaf_hash(hashes[seq - 1])
            assert verifier.included(leaf, seq - 1, size, path) == root
            assert verifier.included(leaf, seq % size, size, path) != root or size == 1
            assert verifier.included(leaf, seq - 1, size, [*path, leaf]) is None


def test_nodes_are_kept_once_and_a_forged_one_is_noticed(ledger, policy, path):
    import sqlite3

    decided(ledger, policy, range(300))
    tree = MerkleTree(ledger)
    first = tree.signed_root()
    assert tree.signed_root() == first
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM tree").fetchone() == (1,)
        connection.execute("UPDATE tree SET hash = zeroblob(32)")
    connection.close()
    with pytest.raises(Damaged, match="holder"):
        tree.signed_root()


def test_an_applicant_checks_the_proof_with_the_standard_library(ledger, policy, tmp_path):
    decided(ledger, policy, range(20))
    proof = proof_of_decision(ledger, "k7")
    assert proof["row"]["open"]["who"]["value"] == {"key": "k7", "person": "p7"}
    file = tmp_path / "proof.json"

    def run(document, *words):
        file.write_text(json.dumps(document))
        command = [sys.executable, "-I", "-S", verifier.__file__, "--proof", file, *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = run(proof, "--public-key", KEYRING.public_key)
    assert (done.returncode, "problems: 0" in done.stdout) == (0, True), done.stdout + done.stderr
    assert run(proof, "--public-key", "00" * 32).returncode == 1
    for change in (
        lambda p: p["row"]["body"].update(accept=not p["row"]["body"]["accept"]),
        lambda p: p["row"].update(seq=p["row"]["seq"] + 1),
        lambda p: p["path"].pop(),
        lambda p: p["row"]["open"]["who"]["value"].update(person="p8"),
        lambda p: p["root"].update(size=p["root"]["size"] + 1),
        lambda p: p["root"].update(root="00" * 32),
        lambda p: p.pop("previous"),
    ):
        changed = json.loads(json.dumps(proof))
        change(changed)
        assert run(changed).returncode == 1
    with pytest.raises(NotFound):
        proof_of_decision(ledger, "nobody")
    ledger.erase("p7", "officer")
    with pytest.raises(Gone):
        proof_of_decision(ledger, "k7")


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=80), st.integers(0, 511))
@settings(max_examples=10, deadline=None)
def test_the_verifier_s_ed25519_is_the_library_s(seed, message, bit):
    key = Ed25519PrivateKey.from_private_bytes(seed)
    public, signature = key.public_key().public_bytes_raw(), bytearray(key.sign(message))
    assert verifier.ed25519_verifies(public, message, bytes(signature))
    signature[bit // 8] ^= 1 << bit % 8
    assert not verifier.ed25519_verifies(public, message, bytes(signature))
    assert not verifier.ed25519_verifies(public, message + b"x", bytes(key.sign(message)))


def test_it_works_on_postgresql(postgres_url):
    from service.tests.ledger.helpers import opened

    with opened(postgres_url) as ledger:
        decided(ledger, published(ledger), range(300))
        proof = proof_of_decision(ledger, "k7")
        assert verifier.check_proof(proof, KEYRING.public_key) == []
