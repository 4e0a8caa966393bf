"""What the chain says about a decision in the clear: the text is written from its parts, and read without parsing it.

A decision has always the same names in the same order, and a ledger has millions of them. `tests/ledger/test_texts.py` compares both ways
with `canonical` and with a parser, on arbitrary values.
"""

import re
from typing import Any

from evenhand.ledger.records import Drawn
from evenhand.ledger.sealing import Sealed
from evenhand.ledger.texts import number_text, quoted

_FLAG = {True: "true", False: "false"}


def decision_text(drawn: Drawn, key: str, slot: str, sealed: Sealed) -> str:
    """Canonical JSON: sorted names, no spaces."""
    d = drawn
    commit = ",".join([f'"{name}":"{digest}"' for name, digest in sealed.commit.items()])
    return (
        f'{{"accept":{_FLAG[d.accept]},"acceptance":{number_text(d.acceptance)},"audit":{_FLAG[d.audit]},'
        f'"audit_weight":{number_text(d.audit_weight)},"commit":{{{commit}}},"epoch":{d.epoch},"first":{_FLAG[d.first]},'
        f'"key":"{key}","mode":"{d.mode}","policy":{quoted(d.policy)},"product":{quoted(d.product)},'
        f'"propensity":{number_text(d.propensity)},"sealed":"{sealed.fingerprint}","slot":"{slot}",'
        f'"tenant":{quoted(d.tenant)},"u":{d.u!r},"window":{quoted(d.window)}}}'
    )


_DIGEST, _PLAIN = ".{64}", r'[^"\\]*'
_DECISION = re.compile(
    r'\{"accept":(\w+),"acceptance":[^,]*,"audit":\w+,"audit_weight":[^,]*,"commit":\{'
    rf'"features":"{_DIGEST}","group":"{_DIGEST}","reply":"{_DIGEST}","who":"{_DIGEST}"\}},"epoch":\d+,"first":(\w+),'
    rf'"key":"({_DIGEST})","mode":"(\w+)","policy":"{_PLAIN}","product":"({_PLAIN})",'
    rf'"propensity":[^,]*,"sealed":"({_DIGEST})","slot":"({_DIGEST})","tenant":"({_PLAIN})","u":[^,]*,"window":"{_PLAIN}"\}}'
)


def decision_says(body: str, columns: tuple[Any, ...], sealed: str) -> bool:
    """True: this text of a decision has these columns (in the order of the table) and this fingerprint.

    False also if its names need escapes: then the document has to be parsed. Three times as fast as parsing.
    """
    found = _DECISION.fullmatch(body)
    if found is None:
        return False
    accept, first, key, mode, product, fingerprint, slot, tenant = found.groups()
    usable = first == "true" and mode == "live"
    return columns == (key, slot, tenant, product, accept == "true", usable) and sealed == fingerprint
