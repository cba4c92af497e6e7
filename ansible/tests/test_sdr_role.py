# SPDX-License-Identifier: Apache-2.0
"""The role sdr on a throw-away host installs what radios need, and removes it.

The packages of GNU Radio and nagi-sdr are dummies, because only the role is tested.
"""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest
from provisioning import Provision

pytestmark = pytest.mark.slow  # a host boots
HOST = {"nagi_node": "emulator", "nagi_links": {"air": {"S": "enp2s0", "N": "far-enp2s0"}}}
ONLY = ("--tags", "sdr")
STATE = """
for place in /etc /usr/local /usr/bin/nagi-sdr; do
    find $place -type d -printf '%p %m %u %g\\n' -o -printf '%p %m %u %g %s %l\\n' 2>&1
done | sort
sysctl net.core.rmem_max net.core.wmem_max 2>/dev/null
cat /sys/class/net/radio0/mtu
dpkg-query --show --showformat '${Package} ${db:Status-Status}\\n' '*nagi*' 2>/dev/null
true
"""
CONTROL = """\
Package: {name}
Version: {version}
Architecture: all
Maintainer: nobody <nobody@example.org>
Depends: {depends}
Description: dummy
"""


def package(directory: Path, name: str, version: str = "1", depends: str = "") -> Path:
    """Build a package that has only nagi-sdr, or no files."""
    tree = directory / f"{name}-{version}"
    (tree / "DEBIAN").mkdir(parents=True)
    text = CONTROL.format(name=name, version=version, depends=depends)
    (tree / "DEBIAN/control").write_text(text.replace("Depends: \n", ""))
    if depends:
        (tree / "usr/bin").mkdir(parents=True)
        program = tree / "usr/bin/nagi-sdr"
        program.write_text(f"#!/bin/sh\necho nagi-sdr {version}\n")
        program.chmod(0o755)
    made = directory / f"{name}_{version}_all.deb"
    command = ["dpkg-deb", "--root-owner-group", "--build", tree, made]
    subprocess.run(command, check=True, capture_output=True)
    return made


@pytest.fixture(scope="module")
def host(boot_host):
    machine = boot_host()
    for name in ("enp2s0", "radio0"):
        machine.run("ip", "link", "add", name, "type", "veth", "peer", "name", f"far-{name}")
    # Nothing of apt's but what is brought.
    gone = "rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/* /var/lib/apt/lists/*"
    machine.run("sh", "-c", gone)
    return machine


@pytest.fixture(scope="module")
def provision(host, tmp_path_factory):
    return Provision({"radio": host}, tmp_path_factory.mktemp("ansible"))


@pytest.fixture
def variables(tmp_path) -> dict[str, object]:
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    made = tmp_path / "deb" / release
    made.mkdir(parents=True)
    package(made, "nagi-link")
    package(made, "gr-nagi", depends="nagi-link")
    return HOST | {
        "nagi_packages": str(made.parent),
        "nagi_radio": "gnuradio",
        "nagi_gnuradio_packages": [],  # it is not to be had here
        "nagi_radio_users": ["root"],
    }


def test_packages_of_the_controller_come_are_renewed_and_go(host, provision, variables, tmp_path):
    before = host.run("sh", "-c", STATE)
    first = provision(*ONLY, radio=variables)
    assert first.status == 0, first.output
    assert host.run("nagi-sdr", "--version") == "nagi-sdr 1\n"
    assert "root - rtprio 99" in host.run("cat", "/etc/security/limits.d/61-nagi-radio.conf")
    assert provision(*ONLY, radio=variables).changed["radio"] == 0

    (older,) = tmp_path.glob("deb/*/gr-nagi_1_all.deb")
    older.unlink()
    package(older.parent, "gr-nagi", "2", "nagi-link")
    second = provision(*ONLY, radio=variables)
    assert second.status == 0, second.output
    assert host.run("nagi-sdr", "--version") == "nagi-sdr 2\n"

    none = provision(*ONLY, radio=variables | {"nagi_radio": "none"})
    assert none.status == 0, none.output
    host.fail("ls", "/usr/bin/nagi-sdr")
    back = provision.deprovision()
    assert back.status == 0, back.output
    assert host.run("sh", "-c", STATE) == before


def test_uhd_gets_buffers_mtu_and_images_and_leaves_them_as_they_were(host, provision, tmp_path):
    images = tmp_path / "images"
    images.mkdir()
    (images / "usrp_b200_fpga.bin").write_bytes(b"\0\1")
    config = "#!/bin/sh\necho /usr/local/share/uhd/images\n"
    host.run("sh", "-c", f"printf '{config}' >/usr/bin/uhd_config_info")
    host.run("chmod", "755", "/usr/bin/uhd_config_info")
    before = host.run("sh", "-c", STATE)
    # A network namespace has what the machine has, and cannot set it.
    buffer = int(host.run("cat", "/proc/sys/net/core/wmem_max"))
    host.run("sh", "-c", f"test $(cat /proc/sys/net/core/rmem_max) = {buffer}")
    variables = HOST | {
        "nagi_uhd_buffer_bytes": buffer,
        "nagi_radio": "uhd",
        "nagi_sdr": "/bin/true",
        "nagi_link": "/bin/true",
        "nagi_gnuradio_packages": [],
        "nagi_uhd_packages": [],
        "nagi_uhd_images": str(images),
        "nagi_radio_interfaces": {"radio0": 9000},
    }
    checked = provision(*ONLY, "--check", radio=variables)
    assert checked.status == 0 and checked.changed["radio"] > 0, checked.output
    assert host.run("sh", "-c", STATE) == before

    first = provision(*ONLY, radio=variables)
    assert first.status == 0, first.output
    assert host.run("cat", "/sys/class/net/radio0/mtu") == "9000\n"
    assert host.run("cat", "/usr/local/share/uhd/images/usrp_b200_fpga.bin") == "\0\1"
    rules = host.run("cat", "/etc/udev/rules.d/61-nagi-radio.rules")
    assert 'ATTR{idVendor}=="fffe|2500|3923"' in rules and 'ATTR{power/control}="on"' in rules
    assert f"net.core.wmem_max = {buffer}\n" in host.run("cat", "/etc/sysctl.d/61-nagi-radio.conf")
    verified = host.run("systemd-analyze", "verify", "/etc/systemd/system/nagi-radio-mtu.service")
    assert verified == ""
    assert provision(*ONLY, radio=variables).changed["radio"] == 0

    back = provision.deprovision()
    assert back.status == 0, back.output
    assert host.run("sh", "-c", STATE) == before


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"nagi_radio": "wifi"}, "nagi_radio"),
        ({"nagi_radio": "gnuradio", "nagi_packages": "/tmp"}, "has no package gr-nagi; run"),
        ({"nagi_radio": "gnuradio"}, "nagi-sdr comes as a package"),
        ({"nagi_radio": "gnuradio", "nagi_uhd_images": "/tmp"}, "set nagi_radio to uhd"),
        (
            {"nagi_radio": "uhd", "nagi_uhd_images": "/proc/nowhere"},
            "no directory /proc/nowhere on the controller",
        ),
        ({"nagi_radio": "uhd", "nagi_radio_interfaces": {"enp2s0": 9000}}, "is a test interface"),
    ],
    ids=["choice", "package", "packages", "images", "directory", "interface"],
)
def test_what_is_wrong_is_refused(host, provision, wrong, said):
    before = host.run("sh", "-c", STATE)
    refused = provision(*ONLY, radio=HOST | wrong)
    assert refused.status != 0 and said in refused.output, refused.output
    assert host.run("sh", "-c", STATE) == before
