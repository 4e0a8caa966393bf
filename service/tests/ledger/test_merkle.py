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

from evenhand_service.ledger import Gone, NotFound
from evenhand_service.ledger import standalone_verifier as verifier
from evenhand_service.ledger.merkle import proof_of_decision, root_and_path


def defined(hashes):
    """MTH of RFC 6962, section 2.1, word by word."""
    if len(hashes) == 1:
        return hashlib.sha256(b"\0" + hashes[0]).digest()
    k = 1
    while k * 2 < len(hashes):
        k *= 2
    return hashlib.sha256(b"\1" + defined(hashes[:k]) + defined(hashes[k:])).digest()


@given(st.integers(1, 70), st.integers(0, 69), st.integers(0, 69))
@settings(max_examples=100, deadline=None)
def test_the_root_is_the_definition_and_a_path_leads_there_from_its_leaf_alone(size, index, other):
    hashes = [bytes([i]) * 32 for i in range(size)]
    leaves = [verifier.leaf_hash(one) for one in hashes]
    index, other = index % size, other % size
    root, path = root_and_path(leaves, index)
    assert root == defined(hashes)
    assert verifier.included(leaves[index], index, size, path) == root
    for place, leaf in ((other, leaves[index]), (index, leaves[other])):
        assert (verifier.included(leaf, place, size, path) == root) == (index == other)
    assert verifier.included(leaves[index], index, size, [*path, root]) is None


def test_the_proofs_of_a_ledger_lead_to_the_root_over_its_chain(ledger, policy):
    from evenhand_service.ledger.chain import chain_rows

    decided(ledger, policy, range(40))
    with ledger.store.reader.connect() as connection:
        hashes = [bytes(row[-1]) for _, _, row in chain_rows(connection)]
    for key in ("k0", "k17", "k39"):
        root = proof_of_decision(ledger, key)["root"]
        assert (root["size"], root["root"]) == (len(hashes), defined(hashes).hex())
        assert not verifier.check_root({**root, "size": 1}, KEYRING.public_key)


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
