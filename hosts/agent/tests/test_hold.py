# SPDX-License-Identifier: Apache-2.0
"""A host is reserved for one campaign at a time, and its settings are restored in all cases."""

from __future__ import annotations

import fcntl
import json
import subprocess
import time

import pytest
from agent_inputs import WITH_AGENT, make_batch_json, make_plan_json
from nagi_agent import hold
from nagi_contracts.inspection import Holder, Inspection


@pytest.fixture
def host(namespaces, tmp_path):
    """Return a host with an agent."""
    namespaces.add("host")
    return Host(namespaces, tmp_path)


class Host:
    """A host with an agent, and a setting to restore."""

    def __init__(self, namespaces, directory) -> None:
        self._namespaces = namespaces
        self.state = directory / "state"
        self._batch = directory / "batch.json"
        self._batch.write_text(
            json.dumps(
                make_batch_json(
                    directory, node="a", is_emulator=True, token="mine", nagi_link="/bin/true"
                )
            )
        )

    def run_agent(self, command: str, *options: str, status: int = 0) -> dict:
        """Run a command of the agent that ends with `status`, and return its answer."""
        done = self._run(command, *options)
        assert done.returncode == status, done.stderr or done.stdout
        return json.loads(done.stdout)

    def run_refused(self, command: str, *options: str) -> str:
        """Run a command that the agent refuses, and return its error message."""
        done = self._run(command, *options)
        assert done.returncode == 2, done.stderr or done.stdout
        return done.stderr

    def _run(self, command: str, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._namespaces.command(
                "host", "env", WITH_AGENT, "/usr/bin/python3", "-m", "nagi_agent",
                command, str(self._batch), *options,
            ),
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip

    def hold(self, token: str = "mine", lease_s: float = 60, status: int = 0) -> dict:
        """Reserve the host, and return the agent's answer."""
        now = time.time()
        holder = {
            "owner": f"{token}@lab",
            "campaign": "test",
            "token": token,
            "since_s": now,
            "expires_s": now + lease_s,
        }
        return self.run_agent("hold", json.dumps(holder), status=status)

    @property
    def holder(self) -> Holder | None:
        return Inspection.model_validate(self.run_agent("inspect")).holder

    def change_setting(self, value: str) -> None:
        """Change the setting with a journal, as Ansible's nagi.testbed.interfaces does."""
        before = self.read_setting()
        undo = [["sysctl", "-q", "-w", f"net.ipv4.tcp_rto_min_us={before}"]]
        (self.state / "interfaces.json").write_text(json.dumps({"undo": undo}))
        self._namespaces.run("host", "sysctl", "-q", "-w", f"net.ipv4.tcp_rto_min_us={value}")

    def read_setting(self) -> str:
        return self._namespaces.run("host", "sysctl", "-n", "net.ipv4.tcp_rto_min_us").strip()

    def kill(self, pid: int) -> None:
        self._namespaces.run("host", "kill", "-KILL", str(pid))

    def find_guard(self) -> int:
        """Return the guard's process id in the namespace."""
        return json.loads((self.state / "holder.json").read_text())["guard"]

    def wait_until(self, condition, timeout_s: float = 60) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, "timed out"
            time.sleep(0.05)


def test_a_host_that_is_provisioned_is_refused(tmp_path, monkeypatch):
    """Hold a lock and write holder.json, as a provisioning does (nagi.testbed.lease)."""
    monkeypatch.setattr(hold, "PROVISIONING_STATE", str(tmp_path))
    ada = {"schema_version": 1, "owner": "ada@desk", "campaign": "provisioning", "token": "x"}
    ada |= {"since_s": 0, "expires_s": 2_000_000_000, "guard": 1}
    (tmp_path / "holder.json").write_text(json.dumps(ada))
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(hold.HeldError, match="held by ada@desk for provisioning"):
            hold.hold(str(tmp_path / "state"), hold.parse_request(ada))
    assert not (tmp_path / "state").exists()


def test_one_campaign_at_a_time(host):
    assert host.hold() == {"restored": False}
    assert host.holder is not None and host.holder.owner == "mine@lab"
    refused = host.hold("other", status=2)
    assert refused["holder"]["owner"] == "mine@lab"
    # The same campaign renews its lease.
    before = host.holder.expires_s
    host.hold(lease_s=1000)
    assert host.holder.expires_s > before + 900
    assert host.run_agent("release", "--token", "other", status=2)["holder"]["token"] == "mine"
    assert host.run_agent("release", "--token", "mine") == {"held": True}
    assert host.holder is None
    host.hold("other")
    assert host.holder is not None and host.holder.token == "other"


def test_settings_are_restored_when_the_host_is_released(host):
    before = host.read_setting()
    host.hold()
    host.change_setting("123456")
    assert host.run_agent("release") == {"held": True}
    assert host.read_setting() == before
    assert host.run_agent("release") == {"held": False}


def test_settings_are_restored_when_the_lease_expires(host):
    before = host.read_setting()
    host.hold(lease_s=1)
    host.change_setting("123456")
    host.wait_until(lambda: host.read_setting() == before)
    host.wait_until(lambda: host.holder is None)
    host.hold("other")


def test_the_next_holder_restores_settings_if_the_guard_is_killed(host):
    before = host.read_setting()
    host.hold()
    host.change_setting("123456")
    host.kill(host.find_guard())
    inspection = Inspection.model_validate(host.run_agent("inspect"))
    assert inspection.holder is None and inspection.to_restore
    assert host.hold("other") == {"restored": True}
    assert host.read_setting() == before


def test_a_journal_that_cannot_be_executed_is_reported_and_kept(host):
    host.hold()
    journal = host.state / "interfaces.json"
    journal.write_text(json.dumps({"undo": [["ip", "link", "set", "gone0", "down"]]}))
    host.kill(host.find_guard())
    assert "gone0" in host.run_refused("release")
    assert journal.exists()


def test_a_batch_is_not_run_on_a_host_that_is_no_longer_held(host, tmp_path):
    host.hold("other")
    batch = json.loads(host._batch.read_text())
    host._batch.write_text(
        json.dumps({**batch, "runs": [{"offset_s": 0, "plan": make_plan_json()}]})
    )
    assert "the lease expired" in host.run_refused("run", "--start-at", "0")
