#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps interrupts of test interfaces off the processor that nagi-link has for itself.

    nagi-interrupts PROCESSOR INTERFACE...
    nagi-interrupts --restore                  has them where they were before

Interrupts that are made later, as when a driver brings its interface up, follow the kernel's
default, which is set, too. See core-api/irq/irq-affinity in the kernel's documentation. Standard
library only, for Python 3.9.
"""

import json
import os
import sys
from pathlib import Path

# systemd makes the directory, and removes it when the service is stopped.
BEFORE = Path(os.environ.get("RUNTIME_DIRECTORY", "/run/nagi-interrupts"), "before.json")


def interrupts(interface: str) -> list[int]:
    """The numbers of an interface's interrupts; none for one without hardware."""
    directory = Path("/sys/class/net", interface)
    # A VLAN's interrupts are those of the interface below.
    directory = next(directory.glob("lower_*"), directory)
    device = directory / "device"
    # A virtio card is a device on top of the PCI device that has the interrupts.
    for place in (device, device.resolve().parent):
        if (place / "msi_irqs").is_dir():
            return sorted(int(path.name) for path in (place / "msi_irqs").iterdir())
        if (place / "irq").exists():
            number = int((place / "irq").read_text())
            return [number] if number > 0 else []
    return []


def online() -> list[int]:
    """The numbers of all processors that are online."""
    text = Path("/sys/devices/system/cpu/online").read_text()
    ranges = [part.split("-") for part in text.strip().split(",")]
    return [number for each in ranges for number in range(int(each[0]), int(each[-1]) + 1)]


def mask(processors: list[int]) -> str:
    """Processors as the kernel writes them: hexadecimal words of 32 bits, the highest first."""
    bits = sum(1 << processor for processor in processors)
    words = [f"{bits & 0xFFFFFFFF:08x}"]
    while bits := bits >> 32:
        words.insert(0, f"{bits & 0xFFFFFFFF:08x}")
    return ",".join(words)


def write(path: str, text: str) -> bool:
    """Writes a setting of the kernel's. False, and said, if it refuses."""
    try:
        Path(path).write_text(text)
    except OSError as error:
        print(f"{path}: cannot be set to {text}: {error.strerror}")
        return False
    return True


def note(paths: list[str]) -> None:
    """Has what the settings are now on disk. Those that cannot be read cannot be written."""
    before = {}
    for path in paths:
        try:
            before[path] = Path(path).read_text()
        except OSError:
            continue
    if BEFORE.parent.is_dir():
        BEFORE.write_text(json.dumps(before, indent=1) + "\n")


def restore() -> int:
    if BEFORE.exists():
        for path, text in json.loads(BEFORE.read_text()).items():
            write(path, text)
        BEFORE.unlink()
    return 0


def main() -> int:
    if sys.argv[1:] == ["--restore"]:
        return restore()
    kept = int(sys.argv[1])
    others = [processor for processor in online() if processor != kept]
    if not others:
        print("there is only one processor: interrupts stay on it")
        return 0
    default = "/proc/irq/default_smp_affinity"
    numbers = [number for name in sys.argv[2:] for number in interrupts(name)]
    note([default, *(f"/proc/irq/{number}/smp_affinity" for number in numbers)])
    if not write(default, mask(others)):
        return 1
    for interface in sys.argv[2:]:
        moved = [
            write(f"/proc/irq/{number}/smp_affinity", mask(others))
            for number in interrupts(interface)
        ]
        print(f"{interface}: {sum(moved)} of {len(moved)} interrupts kept off processor {kept}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
