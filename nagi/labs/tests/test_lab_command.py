# SPDX-License-Identifier: Apache-2.0
"""`nagi lab`: access to hosts, provisioning and deprovisioning over SSH, and faults of hosts."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
from pathlib import Path

import pytest
from nagi.labs.errors import Interrupted
from nagi.labs.provisioning import format_command, make_playbook_command, run_playbook
from nagi_contracts.paths import COLLECTION
from ssh_hosts import SshHosts, require_ssh_hosts, ssh_hosts

__all__ = ["ssh_hosts"]
EXAMPLE = COLLECTION / "inventories" / "physical.example.yml"
# Namespaces have no systemd, so they are provisioned like disk images.
IMAGE = {"nagi_start_services": False, "nagi_clock": "none"}


def write_inventory_of(hosts: SshHosts, **host_variables: dict[str, object]) -> None:
    """Write the inventory, with further variables for all hosts and for some."""
    inventory = hosts.make_inventory()
    inventory["all"]["vars"] = IMAGE
    for cell in inventory["all"]["children"]["cells"]["children"].values():
        for name, variables in cell["hosts"].items():
            variables |= host_variables.get(name, {})
    hosts.write_inventory(inventory)


def lab(hosts: SshHosts, command: str, *options: str, status: int = 0) -> str:
    return hosts.run("lab", command, "-i", hosts.inventory, *options, status=status)


def last_lines(output: str) -> str:
    """Return the summary, which follows Ansible's own output."""
    return output.rpartition("PLAY RECAP")[2].partition("\n\n")[2]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", "-i", "none.yml"], "none.yml: there is no such inventory; "),
        (["check", "-i", "empty.yml"], "empty.yml: it has no group `cells` "),
        (
            ["check", "-i", str(EXAMPLE), "--limit", "alise"],
            "--limit alise: there is no such host or cell; did you mean `alice`? ",
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
    error = nagi("lab", *words)
    assert error.status == 2 and said in error.err and not error.out


def test_the_command_that_is_shown_can_be_copied(monkeypatch):
    command = make_playbook_command("provision", Path("my lab.yml"), "--limit", "alice,bob")
    monkeypatch.setenv("PATH", "/proc/nowhere")
    words = shlex.split(format_command(command))
    assert words[1:] == ["-i", "my lab.yml", "nagi.testbed.provision", "--limit", "alice,bob"]
    assert os.access(words[0], os.X_OK)
    monkeypatch.setenv("PATH", str(Path(words[0]).parent))
    assert format_command(command).startswith("ansible-playbook -i 'my lab.yml' ")


def test_the_cables_of_an_inventory_are_drawn(nagi, tmp_path):
    """Find every interface in the picture as often as in the inventory."""
    picture = tmp_path / "lab.svg"
    drawn = nagi("lab", "graph", "-i", str(EXAMPLE), "--out", str(picture))
    assert drawn.out == f"{picture}\n"
    texts = re.findall(r"<!-- (.+?) -->", picture.read_text())
    for text, count in {"alice": 1, "heron": 1, "wired": 2, "wireless": 2, "enp2s0": 4}.items():
        assert len([each for each in texts if each.split()[0] == text]) == count, (text, texts)
    again = tmp_path / "again.svg"
    nagi("lab", "graph", "-i", str(EXAMPLE), "--out", str(again))
    assert again.read_bytes() == picture.read_bytes()
    error = nagi("lab", "graph", "-i", str(EXAMPLE), "--out", str(tmp_path / "lab.docx"))
    assert error.status == 2 and "give a name such as lab.svg" in error.err
    error = nagi("lab", "graph", "-i", str(EXAMPLE), "--out", str(tmp_path / "none" / "lab.svg"))
    assert error.status == 2 and "No such file or directory" in error.err


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


def make_command(tmp_path: Path, play: str, *hosts: str) -> list[str]:
    """Return the command line that runs a playbook on this machine under several host names."""
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
    command = make_command(tmp_path, PLAY, "well", "other")
    fine = run_playbook(command, ["well", "other"], tmp_path / "well", lambda: False)
    assert fine.ok
    assert {name: host.status for name, host in fine.hosts.items()} == {"well": "ok", "other": "ok"}
    assert fine.hosts["well"].changed == ["Change"]

    names = ["well", "refused", "broken"]
    result = run_playbook(make_command(tmp_path, PLAY, *names), names, tmp_path, lambda: False)
    assert not result.ok and not result.error
    error = result.hosts["refused"]
    assert (error.status, error.what) == ("refused", "one is wrong; two is wrong")
    # The play ends with the refusal, before the task that fails.
    assert {result.hosts[name].status for name in ("well", "broken")} == {"stopped"}

    (tmp_path / "broken").mkdir()
    command = make_command(tmp_path, PLAY, "well", "broken")
    result = run_playbook(command, ["well", "broken"], tmp_path / "broken", lambda: False)
    broken = result.hosts["broken"]
    assert (broken.status, broken.what) == ("failed", "Break: the disk is full")
    assert broken.cure == "read the output of Ansible above"


def test_a_playbook_that_ansible_cannot_run_is_an_error(tmp_path, ansible_home):
    command = make_command(tmp_path, "- hosts: [", "alice")
    result = run_playbook(command, ["alice"], tmp_path, lambda: False)
    assert not result.ok and result.hosts["alice"].status == "stopped"


def test_who_interrupts_leaves_no_workers(tmp_path, ansible_home):
    """Check that Ansible's workers end even during a task.

    The workers are in sessions of their own.
    """
    mark = tmp_path / "begun"
    task = {"ansible.builtin.command": f"sh -c 'echo >{mark}; sleep 600'"}
    wait = json.dumps([{"hosts": "all", "gather_facts": False, "tasks": [task]}])
    command = make_command(tmp_path, wait, "alice")
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
        write_inventory_of(
            hosts,
            carol={
                "ansible_become": True,
                "ansible_become_method": "su",
                "ansible_become_password": "wrong",
            },
        )
        hosts.stop_sshd("heron")
        before = {name: hosts.read_snapshot(name) for name in ("alice", "carol")}
        output = lab(hosts, "provision", "--json", status=1)
        report = json.loads(output[output.index('{\n "schema_version"') :])
        result = {host.pop("host"): host for host in report["hosts"]}
        assert not report["ok"]
        assert {name: host["status"] for name, host in result.items()} == {
            "alice": "stopped",
            "bob": "unreachable",
            "carol": "failed",
            "heron": "unreachable",
        }
        assert "Permission denied (publickey)" in result["bob"]["what"]
        assert "nagi lab bootstrap" in result["bob"]["cure"]
        assert "Connection refused" in result["heron"]["what"]
        assert "start sshd there" in result["heron"]["cure"]
        assert "Incorrect su password" in result["carol"]["what"]
        assert "-K (--ask-become-pass)" in result["carol"]["cure"]
        assert {name: hosts.read_snapshot(name) for name in before} == before


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_hosts_are_checked_provisioned_and_put_back(ssh_hosts):
    write_inventory_of(ssh_hosts)
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
    assert "\n4 hosts restored, except what stays on 1 of them\n" in away, away
    after = states()
    for name in ("alice", "bob", "carol"):
        assert after[name] == before[name]


@pytest.mark.timeout(1200)
def test_a_host_is_given_access_and_loses_it(ssh_hosts):
    """Log in as root with one key, and give another account another key."""
    write_inventory_of(ssh_hosts)
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


@pytest.mark.timeout(900)
def test_a_key_that_does_not_work_is_said(ssh_hosts):
    """Let sshd refuse an authorised key for three reasons, none of which the login knows."""
    write_inventory_of(ssh_hosts)
    hup = 'kill -HUP "$(cat /run/sshd.pid)"'
    allow = f"echo AllowUsers root >>/etc/ssh/sshd_config; {hup}"
    ssh_hosts.enter("alice", "sh", "-c", allow)
    ssh_hosts.enter("bob", "sh", "-c", "useradd -m nagi-admin; chmod 0777 /home/nagi-admin")
    become = "echo 'visitor ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/visitor"
    forbid = f"sed -i s/prohibit-password/no/ /etc/ssh/sshd_config; {hup}"
    ssh_hosts.enter("carol", "sh", "-c", f"{become}; {forbid}")
    for host, options in {
        "alice": ("--account", "nagi-admin"),
        "bob": ("--account", "nagi-admin"),
        "carol": ("--user", "visitor", "--account", "root"),
    }.items():
        said = last_lines(lab(ssh_hosts, "bootstrap", "--limit", host, *options, status=1))
        assert re.search(rf"^{host} +failed +\S+: Permission denied \(publickey\)", said, re.M), (
            said
        )
        cure = "cure: the key is authorised there, but its sshd refuses it: look at PermitRootLogin"
        assert cure in " ".join(said.split())
        assert "not done on 1 of 1 host\n" in said and "reached by the key" not in said


@pytest.mark.timeout(900)
def test_another_key_that_works_does_not_count(ssh_hosts):
    """Have a key that works in the user's ssh configuration. The new one cannot be authorised."""
    write_inventory_of(ssh_hosts)
    ssh_hosts.enter("alice", "sh", "-c", "cp -a /root/.ssh/authorized_keys /etc/ssh/keys")
    elsewhere = "echo AuthorizedKeysFile /etc/ssh/keys >>/etc/ssh/sshd_config"
    ssh_hosts.enter("alice", "sh", "-c", f'{elsewhere}; kill -HUP "$(cat /run/sshd.pid)"')
    (ssh_hosts.home / "keys").mkdir(mode=0o777)
    (ssh_hosts.home / "keys").chmod(0o777)
    (ssh_hosts.home / ".ssh").mkdir()
    (ssh_hosts.home / ".ssh/config").write_text(f"IdentityFile {ssh_hosts.home}/id_ed25519\n")
    key = ("--key", str(ssh_hosts.home / "keys/new"))
    said = last_lines(lab(ssh_hosts, "bootstrap", "--limit", "alice", *key, status=1))
    assert re.search(r"^alice +failed +the host accepts another key, but not ", said, re.M), said
