# SPDX-License-Identifier: Apache-2.0
"""The certificate: each limit is one that a run can miss."""

from __future__ import annotations

import pytest
from nagi.certificate import LIMITS, certify
from nagi.contracts.links import Links
from nagi.contracts.plan import RunPlan
from nagi.contracts.records import Manifest
from nagi.paths import SCHEMAS

(RUN,) = sorted((SCHEMAS / "example" / "campaign" / "runs").iterdir())


@pytest.fixture
def evidence():
    """Plan, emulator's account and agents' records of the example, as plain data to tamper with."""
    nodes = Manifest.read(RUN / "manifest.json").nodes
    return (
        RunPlan.read(RUN / "plan.json"),
        Links.read(RUN / "links.json").model_dump(mode="json"),
        {name: node.model_dump(mode="json") for name, node in nodes.items()},
    )


def judge(evidence):
    plan, links, nodes = evidence
    records = Manifest.read(RUN / "manifest.json").model_dump(mode="json") | {"nodes": nodes}
    return certify(
        plan, Links.model_validate(links), Manifest.model_validate(records).nodes.values()
    )


def test_a_good_run_is_valid(evidence):
    verdict = judge(evidence)
    assert verdict.status == "valid"
    assert verdict.reasons == []
    assert [check.name for check in verdict.checks] == list(LIMITS)
    assert all(check.value is not None for check in verdict.checks)


def there(links):
    return links["links"][0]["a_to_b"]


def _late(links, nodes):
    there(links)["transit_error_ns"]["median"] = 150_000


def _sometimes_late(links, nodes):
    there(links)["transit_error_ns"]["p99"] = 1_500_000


def _wrong_rate(links, nodes):
    there(links)["server"]["busy_ns"] = int(there(links)["server"]["busy_ns"] * 1.002)


def _behind(links, nodes):
    there(links)["arrival_lateness_ns"]["p99"] = 600_000


def _leak(links, nodes):
    there(links)["packets"]["delivered"] -= 1


def _socket(links, nodes):
    links["links"][1]["b"]["socket_drops"] = 1


def _merged(links, nodes):
    links["links"][1]["b"]["oversized"] = 1


def _checksum(links, nodes):
    links["links"][0]["a"]["checksum_missing"] = 1


def _unsent(links, nodes):
    links["links"][0]["a"]["send_failures"] = 1


def _capture(links, nodes):
    nodes["server"]["captures"][0]["dropped"] = 1


def _offload(links, nodes):
    nodes["server"]["offloads"]["core"] = ["generic-receive-offload"]


def _asleep(links, nodes):
    nodes["client"]["late_s"] = 0.2


def _overload(links, nodes):
    nodes["emulator"]["processors_busy"] = 0.99


@pytest.mark.parametrize(
    ("sabotage", "check", "subject"),
    [
        (_late, "transit_error_median", "radio forward"),
        (_sometimes_late, "transit_error_p99", "radio forward"),
        (_wrong_rate, "rate_error", "radio forward"),
        (_behind, "arrival_lateness_p99", "radio forward"),
        (_leak, "unaccounted", "radio forward"),
        (_socket, "emulator_drops", "core.b"),
        (_merged, "merged_segments", "core.b"),
        (_checksum, "missing_checksums", "radio.a"),
        (_unsent, "send_failures", "radio.a"),
        (_capture, "capture_drops", "server.core.pcap"),
        (_offload, "offloads", "server core: generic-receive-offload"),
        (_asleep, "agent_lateness", "client"),
        (_overload, "processors_busy", "emulator"),
    ],
)
def test_a_run_that_misses_a_limit_is_invalid_and_says_where(evidence, sabotage, check, subject):
    plan, links, nodes = evidence
    sabotage(links, nodes)
    verdict = judge((plan, links, nodes))
    assert verdict.status == "invalid"
    missed = [each for each in verdict.checks if not each.ok]
    assert [(each.name, each.subject) for each in missed] == [(check, subject)]
    (reason,) = verdict.reasons
    assert check in reason and subject in reason


def test_every_limit_has_a_sabotage():
    (marker,) = test_a_run_that_misses_a_limit_is_invalid_and_says_where.pytestmark
    assert {case[1] for case in marker.args[1]} == set(LIMITS)


def test_an_emulator_that_died_certifies_nothing(evidence):
    plan, links, nodes = evidence
    links["complete"] = False
    assert judge((plan, links, nodes)).status == "invalid"
