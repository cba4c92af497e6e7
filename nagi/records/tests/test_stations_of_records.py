# SPDX-License-Identifier: Apache-2.0
"""Senders and receivers of records on shared media."""

from __future__ import annotations

import numpy as np
import pytest
from media_specs import CHAIN
from nagi.plan.planner import plan_runs
from nagi.records.direction_numbers import get_receivers, get_senders
from nagi.spec.points import read_experiment

# Numbers of links come first, so stations of a plan without links begin at 0.
WITH_A_LINK = CHAIN.replace("n3: host}", "n3: host, n4: host}").replace(
    "flows:", "links:\n  wired: {between: [n3, n4], rate: 10 Mb/s, delay: 1 ms}\nflows:"
).replace("n3: host", "n3: router").replace("to: n3", "to: n4")  # fmt: skip


@pytest.mark.parametrize(("spec", "links"), [(CHAIN, 0), (WITH_A_LINK, 1)])
def test_a_record_without_a_receiver_has_none(tmp_path, spec, links):
    path = tmp_path / "spec.yaml"
    path.write_text(spec)
    (plan,) = plan_runs(read_experiment(path, None)[0], None)
    assert len(plan.links) == links
    numbers = np.array([0, 1, 2, 3], np.int64) + 2 * links
    assert list(get_senders(numbers, plan)) == ["n0", "n1", "n2", "n3"]
    receivers = get_receivers(numbers, np.array([1, -1, 3, -1], np.int64), plan)
    assert list(receivers.isna()) == [False, True, False, True]
    assert [receivers[0], receivers[2]] == ["n1", "n3"]
