# SPDX-License-Identifier: Apache-2.0
"""Holding a host: one campaign at a time, and put back as it was whatever happens to whom."""

from __future__ import annotations

import json
import subprocess
import time

import pytest
from agent_inputs import batch_json, plan_json
from nagi_contracts.inspection import Holder, Inspection
from nagi_contracts.paths import AGENT, FPGA, P4_CONTROL

WITH_AGENT = f"PYTHONPATH={AGENT}:{P4_CONTROL}:{FPGA}"


@pytest.fixture
def held(namespaces, tmp_path):
    namespaces.add("host")
    return Host(namespaces, tmp_path)


class Host:
    """A host with an agent, and something to put back."""

    def __init__(self, namespaces, directory) -> None:
        self._namespaces = namespaces
        self.state = directory / "state"
        self._batch = directory / "batch.json"
        self._batch.write_text(
            json.dumps(
                batch_json(
                    directory, node="a", is_emulator=True, token="mine", nagi_link="/bin/true"
                )
            )
        )

    def agent(self, command: str, *options: str, status: int = 0) -> dict:
        done = self._done(command, *options)
        assert done.returncode == status, done.stderr or done.stdout
        return json.loads(done.stdout)

    def complaint(self, command: str, *options: str) -> str:
        """Of a command that the agent refuses."""
        done = self._done(command, *options)
        assert done.returncode == 2, done.stderr or done.stdout
        return done.stderr

    def _done(self, command: str, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._namespaces.command(
                "host", "env", WITH_AGENT, "/usr/bin/python3", "-m", "nagi_agent",
                command, str(self._batch), *options,
            ),
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip

    def hold(self, token: str = "mine", lasts: float = 60, status: int = 0) -> dict:
        now = time.time()
        holder = {
            "owner": f"{token}@lab",
            "campaign": "test",
            "token": token,
            "since_s": now,
            "expires_s": now + lasts,
        }
        return self.agent("hold", json.dumps(holder), status=status)

    @property
    def holder(self) -> Holder | None:
        return Inspection.model_validate(self.agent("inspect")).holder

    def set(self, value: str) -> None:
        """Changes a setting, as nagi.testbed.interfaces does, with a journal."""
        before = self.get()
        undo = [["sysctl", "-q", "-w", f"net.ipv4.tcp_rto_min_us={before}"]]
        (self.state / "interfaces.json").write_text(json.dumps({"undo": undo}))
        self._namespaces.run("host", "sysctl", "-q", "-w", f"net.ipv4.tcp_rto_min_us={value}")

    def get(self) -> str:
        return self._namespaces.run("host", "sysctl", "-n", "net.ipv4.tcp_rto_min_us").strip()

    def kill(self, pid: int) -> None:
        self._namespaces.run("host", "kill", "-KILL", str(pid))

    def guard(self) -> int:
        """Its process, as the namespace numbers it."""
        return json.loads((self.state / "holder.json").read_text())["guard"]

    def wait_until(self, condition, timeout_s: float = 10) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, "it did not happen"
            time.sleep(0.05)


def test_one_campaign_at_a_time(held):
    assert held.hold() == {"restored": False}
    assert held.holder is not None and held.holder.owner == "mine@lab"
    refused = held.hold("other", status=2)
    assert refused["holder"]["owner"] == "mine@lab"
    # The same campaign goes on, with a longer lease.
    before = held.holder.expires_s
    held.hold(lasts=1000)
    assert held.holder.expires_s > before + 900
    assert held.agent("release", "--token", "other", status=2)["holder"]["token"] == "mine"
    assert held.agent("release", "--token", "mine") == {"held": True}
    assert held.holder is None
    held.hold("other")
    assert held.holder.token == "other"


def test_everything_is_put_back_when_the_host_is_let_go(held):
    before = held.get()
    held.hold()
    held.set("123456")
    assert held.agent("release") == {"held": True}
    assert held.get() == before
    assert held.agent("release") == {"held": False}


def test_everything_is_put_back_when_the_lease_runs_out(held):
    before = held.get()
    held.hold(lasts=1)
    held.set("123456")
    held.wait_until(lambda: held.get() == before)
    held.wait_until(lambda: held.holder is None)
    held.hold("other")


def test_a_guard_that_is_killed_leaves_the_rest_to_the_next_holder(held):
    before = held.get()
    held.hold()
    held.set("123456")
    held.kill(held.guard())
    found = Inspection.model_validate(held.agent("inspect"))
    assert found.holder is None and found.to_restore
    assert held.hold("other") == {"restored": True}
    assert held.get() == before


def test_what_cannot_be_put_back_is_said_and_kept(held):
    held.hold()
    journal = held.state / "interfaces.json"
    journal.write_text(json.dumps({"undo": [["ip", "link", "set", "gone0", "down"]]}))
    held.kill(held.guard())
    assert "gone0" in held.complaint("release")
    assert journal.exists()


def test_a_batch_is_not_run_on_a_host_that_is_no_longer_held(held, tmp_path):
    held.hold("other")
    batch = json.loads(held._batch.read_text())
    held._batch.write_text(json.dumps({**batch, "runs": [{"offset_s": 0, "plan": plan_json()}]}))
    assert "its lease has run out" in held.complaint("run", "--start-at", "0")
