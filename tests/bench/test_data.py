"""Without network the bench generates rows and says so; the reader of wheels is tested with the
data sets.
"""

import numpy as np

from bench import data
from evenhand.tables import DataUnavailable, named


def test_without_network_rows_are_generated_and_it_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def offline(source, folder):
        raise DataUnavailable("no network.")

    monkeypatch.setattr(named, "download", offline)
    table, reason = data.load_or_generate("adult", "race")
    assert table.generated
    assert reason is not None
    assert "no network" in reason
    assert len(np.unique(table.group)) == 5
    assert set(np.unique(table.label)) == {-1, 1}
