# SPDX-License-Identifier: Apache-2.0
"""`nagi lab`: hosts that are only SSH addresses are given access, provisioned and put back; and
what is said of hosts that are not as they should be."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
from pathlib import Path

import pytest
from nagi.labs.errors import Interrupted
from nagi.labs.provisioning import playbook_command, run_playbook, shown
from nagi_contracts.paths import COLLECTION
from ssh_hosts import SshHosts, require_ssh_hosts, ssh_hosts

__all__ = ["ssh_hosts"]
EXAMPLE = COLLECTION / "inventories" / "physical.example.yml"
# Namespaces have no systemd of their own: they are provisioned as disk images are.
IMAGE = {"nagi_start_services": False, "nagi_clock": "none"}


def inventory_of(hosts: SshHosts, **of_hosts: dict[str, object]) -> None:
    """Writes the inventory, with further variables of all hosts and of some."""
    inventory = hosts.as_inventory()
    inventory["all"]["vars"] = IMAGE
    for cell in inventory["all"]["children"]["cells"]["children"].values():
        for name, variables in cell["hosts"].items():
            variables |= of_hosts.get(name, {})
    hosts.write_inventory(inventory)


def lab(hosts: SshHosts, command: str, *options: str, status: int = 0) -> str:
    return hosts.run("lab", command, "-i", hosts.inventory, *options, status=status)


def last_lines(said: str) -> str:
    """The summary: what follows Ansible's own."""
    return said.rpartition("PLAY RECAP")[2].partition("\n\n")[2]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", "-i", "none.yml"], "none.yml: there is no such inventory; "),
        (["check", "-i", "empty.yml"], "empty.yml: it has no group `cells` "),
        (
            ["check", "-i", str(EXAMPLE), "--limit", "alise"],
            "--limit alise: it has no such host, nor cell; did you mean `alice`? ",
        ),
        (
            ["provision", "-i", str(EXAMPLE), "--tags", "clocks"],
            "--tags clocks: there is no such role; did you mean `clock`? ",
        ),
        (["deprovision", "-i", str(EXAMPLE)], "standard input is not a terminal; give --yes"),
    ],
    ids=["inventory", "cells", "limit", "tags", "terminal"],
)
def test_what_is_wrong_is_refused_before_ansible_is_run(nagi, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    Path("empty.yml").write_text("all: {hosts: {alice: {}}}\n")
    refused = nagi("lab", *words)
    assert refused.status == 2 and said in refused.err and not refused.out


def test_the_command_that_is_shown_can_be_copied(monkeypatch):
    command = playbook_command("provision", Path("my lab.yml"), "--limit", "alice,bob")
    monkeypatch.setenv("PATH", "/proc/nowhere")
    words = shlex.split(shown(command))
    assert words[1:] == ["-i", "my lab.yml", "nagi.testbed.provision", "--limit", "alice,bob"]
    assert os.access(words[0], os.X_OK)
    monkeypatch.setenv("PATH", str(Path(words[0]).parent))
    assert shown(command).startswith("ansible-playbook -i 'my lab.yml' ")


PLAY = """
- name: Here
  hosts: all
  gather_facts: false
  any_errors_fatal: true
  tasks:
    - name: Change
      ansible.builtin.command: "true"
    - name: Have a second try
      block: [{name: Fail, ansible.builtin.command: "false"}]
      rescue: [{name: Mend, ansible.builtin.command: "true", changed_when: false}]
    - name: Fail, and go on
      ansible.builtin.command: "false"
      ignore_errors: true
    - name: Refuse
      ansible.builtin.fail:
        msg: "{{ inventory_hostname }}: {{ item }} is wrong"
      loop: [one, two]
      when: inventory_hostname == 'refused'
    - name: Break
      ansible.builtin.command: sh -c 'echo the disk is full >&2; exit 3'
      when: inventory_hostname == 'broken'
"""


def here(tmp_path: Path, play: str, *hosts: str) -> list[str]:
    """The command line that runs a playbook on this machine, by these names."""
    (tmp_path / "play.yml").write_text(play)
    local = {"ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3"}
    inventory = {"all": {"vars": local, "hosts": {host: {} for host in hosts}}}
    (tmp_path / "hosts.yml").write_text(json.dumps(inventory))
    return ["ansible-playbook", "-i", str(tmp_path / "hosts.yml"), str(tmp_path / "play.yml")]


@pytest.fixture
def ansible_home(tmp_path, monkeypatch):
    monkeypatch.setenv("ANSIBLE_HOME", str(tmp_path / "home"))


def test_what_became_of_each_host_is_told(tmp_path, ansible_home):
    (tmp_path / "well").mkdir()
    command = here(tmp_path, PLAY, "well", "other")
    fine = run_playbook(command, ["well", "other"], tmp_path / "well", lambda: False)
    assert fine.ok
    assert {name: host.status for name, host in fine.hosts.items()} == {"well": "ok", "other": "ok"}
    assert fine.hosts["well"].changed == ["Change"]

    names = ["well", "refused", "broken"]
    found = run_playbook(here(tmp_path, PLAY, *names), names, tmp_path, lambda: False)
    assert not found.ok and not found.error
    refused = found.hosts["refused"]
    assert (refused.status, refused.what) == ("refused", "one is wrong; two is wrong")
    # The play ends with the refusal, before anything breaks.
    assert {found.hosts[name].status for name in ("well", "broken")} == {"stopped"}

    (tmp_path / "broken").mkdir()
    command = here(tmp_path, PLAY, "well", "broken")
    found = run_playbook(command, ["well", "broken"], tmp_path / "broken", lambda: False)
    broken = found.hosts["broken"]
    assert (broken.status, broken.what) == ("failed", "Break: the disk is full")
    assert broken.cure == "read what Ansible says above"


def test_a_playbook_that_ansible_cannot_run_is_an_error(tmp_path, ansible_home):
    command = here(tmp_path, "- hosts: [", "alice")
    found = run_playbook(command, ["alice"], tmp_path, lambda: False)
    assert not found.ok and found.hosts["alice"].status == "stopped"


def test_who_interrupts_leaves_no_workers(tmp_path, ansible_home):
    """However deep in a task: Ansible's workers are in sessions of their own."""
    mark = tmp_path / "begun"
    task = {"ansible.builtin.command": f"sh -c 'echo >{mark}; sleep 600'"}
    wait = json.dumps([{"hosts": "all", "gather_facts": False, "tasks": [task]}])
    command = here(tmp_path, wait, "alice")
    with pytest.raises(Interrupted):
        run_playbook(command, ["alice"], tmp_path, mark.exists)
    marked = f"NAGI_OUTCOMES={tmp_path}".encode()
    left = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and marked in (entry / "environ").read_bytes():
                left.append(entry.name)
        except OSError:
            continue
    assert not left


@pytest.mark.timeout(900)
def test_hosts_that_cannot_be_provisioned_are_named_with_the_cure():
    require_ssh_hosts()
    with SshHosts(wrong_key=["bob"], without_root=["carol"]) as hosts:
        inventory_of(
            hosts,
            carol={
                "ansible_become": True,
                "ansible_become_method": "su",
                "ansible_become_password": "wrong",
            },
        )
        hosts.stop_sshd("heron")
        before = {name: hosts.snapshot(name) for name in ("alice", "carol")}
        said = lab(hosts, "provision", "--json", status=1)
        told = json.loads(said[said.index('{\n "schema_version"') :])
        found = {host.pop("host"): host for host in told["hosts"]}
        assert not told["ok"]
        assert {name: host["status"] for name, host in found.items()} == {
            "alice": "stopped",
            "bob": "unreachable",
            "carol": "failed",
            "heron": "unreachable",
        }
        assert "Permission denied (publickey)" in found["bob"]["what"]
        assert "nagi lab bootstrap" in found["bob"]["cure"]
        assert "Connection refused" in found["heron"]["what"]
        assert "start sshd there" in found["heron"]["cure"]
        assert "Incorrect su password" in found["carol"]["what"]
        assert "-K (--ask-become-pass)" in found["carol"]["cure"]
        assert {name: hosts.snapshot(name) for name in before} == before


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_hosts_are_checked_provisioned_and_put_back(ssh_hosts):
    inventory_of(ssh_hosts)
    state = ("sh", "-c", "find /etc /usr/local /var/lib/nagi* -printf '%p %m %u %g %l\\n' | sort")

    def states() -> dict[str, str]:
        return {name: ssh_hosts.enter(name, *state) for name in ssh_hosts.hosts}

    before = states()
    checked = last_lines(lab(ssh_hosts, "check", "--limit", "alice", "--limit", "heron"))
    assert re.search(r"^alice +ok +\d+ changes to make$", checked, re.M), checked
    assert "bob" not in checked and "\nnext: nagi lab provision -i " in checked
    assert states() == before

    provisioned = last_lines(lab(ssh_hosts, "provision"))
    assert re.search(r"^heron +ok +\d+ changes$", provisioned, re.M), provisioned
    assert "\n4 hosts provisioned\nnext: nagi doctor -i " in provisioned
    again = last_lines(lab(ssh_hosts, "provision"))
    assert len(re.findall(r"^\w+ +ok +nothing to change$", again, re.M)) == 4, again

    ssh_hosts.enter("heron", "sh", "-c", "echo mine >>/etc/tmpfiles.d/nagi.conf")
    away = last_lines(lab(ssh_hosts, "deprovision", "--yes"))
    assert "stays: " in away and "edited since" in away, away
    after = states()
    for name in ("alice", "bob", "carol"):
        assert after[name] == before[name]


@pytest.mark.timeout(1200)
def test_a_host_is_given_access_and_loses_it(ssh_hosts):
    """Who logs in as root with one key gives another account another key."""
    inventory_of(ssh_hosts)
    only = ("--limit", "alice", "--key", str(ssh_hosts.home / "keys" / "new"))
    (ssh_hosts.home / "keys").mkdir(mode=0o777)
    (ssh_hosts.home / "keys").chmod(0o777)
    given = lab(ssh_hosts, "bootstrap", *only, "--account", "nagi-admin")
    assert "1 host reached by the key" in given
    key = (ssh_hosts.home / "keys" / "new.pub").read_text()
    assert ssh_hosts.enter("alice", "cat", "/home/nagi-admin/.ssh/authorized_keys") == key
    assert (
        ssh_hosts.enter("alice", "stat", "-c", "%a %U", "/home/nagi-admin/.ssh")
        == "700 nagi-admin\n"
    )
    again = last_lines(lab(ssh_hosts, "bootstrap", *only, "--account", "nagi-admin"))
    assert "nothing to change" in again
    assert not ssh_hosts.enter("bob", "getent", "passwd", "nagi-admin", status=2)

    lab(ssh_hosts, "bootstrap", *only, "--account", "nagi-admin", "--remove")
    assert not ssh_hosts.enter("alice", "getent", "passwd", "nagi-admin", status=2)

    # An account that was there keeps everything but the key.
    lab(ssh_hosts, "bootstrap", *only)
    assert key in ssh_hosts.enter("alice", "cat", "/root/.ssh/authorized_keys")
    lab(ssh_hosts, "bootstrap", *only, "--remove")
    left = ssh_hosts.enter("alice", "cat", "/root/.ssh/authorized_keys")
    assert key not in left and left.startswith("ssh-ed25519 ")
