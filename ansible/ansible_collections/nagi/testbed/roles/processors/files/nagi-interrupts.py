#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Keep interrupts of test interfaces off the processor that is reserved for nagi-link.

    nagi-interrupts PROCESSOR INTERFACE...
    nagi-interrupts --restore                  restore the previous settings

The kernel's default is set as well, because it applies to interrupts that are created later, for
example when a driver sets its interface up. See core-api/irq/irq-affinity in the documentation of
the kernel.

Standard library only, for Python 3.9.
"""

import json
import os
import sys
from pathlib import Path

# The saved settings. systemd makes the directory, and removes it when the service is stopped.
SAVED_SETTINGS = Path(os.environ.get("RUNTIME_DIRECTORY", "/run/nagi-interrupts"), "before.json")


def list_interrupts(interface: str) -> list[int]:
    """Return the numbers of an interface's interrupts; [] for an interface without hardware.

    For a VLAN, return the interrupts of the interface below it.
    """
    directory = Path("/sys/class/net", interface)
    directory = next(directory.glob("lower_*"), directory)
    device = directory / "device"
    # A virtio card is a device on top of the PCI device that has the interrupts.
    for path in (device, device.resolve().parent):
        if (path / "msi_irqs").is_dir():
            return sorted(int(irq.name) for irq in (path / "msi_irqs").iterdir())
        if (path / "irq").exists():
            number = int((path / "irq").read_text())
            return [number] if number > 0 else []
    return []


def list_online_processors() -> list[int]:
    """Return the numbers of all processors that are online."""
    text = Path("/sys/devices/system/cpu/online").read_text()
    ranges = [part.split("-") for part in text.strip().split(",")]
    return [number for ends in ranges for number in range(int(ends[0]), int(ends[-1]) + 1)]


def make_mask(processors: list[int]) -> str:
    """Write processors in the kernel's format: hexadecimal words of 32 bits, the highest first."""
    bits = sum(1 << processor for processor in processors)
    words = [f"{bits & 0xFFFFFFFF:08x}"]
    while bits := bits >> 32:
        words.insert(0, f"{bits & 0xFFFFFFFF:08x}")
    return ",".join(words)


def write_setting(path: str, text: str) -> bool:
    """Write a setting of the kernel. If the kernel refuses, print the reason and return False."""
    try:
        Path(path).write_text(text)
    except OSError as error:
        print(f"{path}: cannot be set to {text}: {error.strerror}")
        return False
    return True


def save_settings(paths: list[str]) -> None:
    """Save the current content of `paths` in SAVED_SETTINGS, except files that cannot be read.

    Nothing is saved if systemd has not made the directory.
    """
    settings = {}
    for path in paths:
        try:
            settings[path] = Path(path).read_text()
        except OSError:
            continue
    if SAVED_SETTINGS.parent.is_dir():
        SAVED_SETTINGS.write_text(json.dumps(settings, indent=1) + "\n")


def restore_settings() -> int:
    """Restore the saved settings, and return the exit status."""
    if SAVED_SETTINGS.exists():
        for path, text in json.loads(SAVED_SETTINGS.read_text()).items():
            write_setting(path, text)
        SAVED_SETTINGS.unlink()
    return 0


def main() -> int:
    """Run the command, and return the exit status.

    It is 1 if the kernel refuses the default. Refused settings of single interrupts are printed.
    """
    if sys.argv[1:] == ["--restore"]:
        return restore_settings()
    reserved = int(sys.argv[1])
    other_processors = [
        processor for processor in list_online_processors() if processor != reserved
    ]
    if not other_processors:
        print("there is only one processor, so interrupts stay on it")
        return 0
    default_path = "/proc/irq/default_smp_affinity"
    numbers = [number for name in sys.argv[2:] for number in list_interrupts(name)]
    save_settings([default_path, *(f"/proc/irq/{number}/smp_affinity" for number in numbers)])
    if not write_setting(default_path, make_mask(other_processors)):
        return 1
    for interface in sys.argv[2:]:
        successes = [
            write_setting(f"/proc/irq/{number}/smp_affinity", make_mask(other_processors))
            for number in list_interrupts(interface)
        ]
        count = f"{sum(successes)} of {len(successes)} interrupts"
        print(f"{interface}: {count} kept off processor {reserved}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
