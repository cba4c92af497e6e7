# SPDX-License-Identifier: Apache-2.0
"""The registers of the FPGA link emulator.

Generated from registers.yaml by nagi_fpga.registers; change it there.
"""

MAGIC = 0x6E616769
VERSION = 1

# Name: address in bytes, bits.
REGISTERS = {
    "magic": (0x000, 32),
    "map_version": (0x004, 32),
    "build_id": (0x008, 32),
    "widths": (0x00C, 32),
    "sizes": (0x010, 32),
    "clock_period_ps": (0x014, 32),
    "control": (0x018, 32),
    "status": (0x01C, 32),
    "command": (0x020, 32),
    "link": (0x024, 32),
    "seed": (0x028, 64),
    "epoch_ns": (0x030, 64),
    "time_ns": (0x038, 64),
    "features": (0x040, 32),
}

DIRECTIONS = {
    "forward": 0x100,
    "backward": 0x200,
}

# Name: address relative to the direction's base, bits.
DIRECTION = {
    "rate_bps": (0x000, 64),
    "mode": (0x008, 32),
    "overhead_bytes": (0x00C, 32),
    "queue_limit": (0x010, 64),
    "mark_threshold": (0x018, 64),
    "delay_ns": (0x020, 64),
    "loss_in_good": (0x028, 64),
    "loss_in_bad": (0x030, 64),
    "good_to_bad": (0x038, 64),
    "bad_to_good": (0x040, 64),
    "poisson_mean_ps": (0x048, 64),
}

# Counters of 64 bits. Name: address relative to the direction's base.
COUNTERS = {
    "offered": 0x080,
    "offered_bytes": 0x088,
    "delivered": 0x090,
    "delivered_bytes": 0x098,
    "queue_overflows": 0x0A0,
    "channel_losses": 0x0A8,
    "marked": 0x0B0,
    "transmitted": 0x0B8,
    "transmitted_bytes": 0x0C0,
    "transmitting_ns": 0x0C8,
    "max_waiting": 0x0D0,
    "bad_frames": 0x0D8,
    "memory_overflows": 0x0E0,
    "lost_records": 0x0E8,
    "late_releases": 0x0F0,
    "max_late_ns": 0x0F8,
}

# Register: field: highest and lowest bit.
FIELDS = {
    "widths": {
        "data_width": (15, 0),
        "mem_width": (31, 16),
    },
    "sizes": {
        "addr_width": (7, 0),
        "queue_depth_width": (15, 8),
        "max_frame": (31, 16),
    },
    "control": {
        "enable": (0, 0),
    },
    "status": {
        "active": (0, 0),
        "idle": (1, 1),
    },
    "command": {
        "latch": (0, 0),
        "clear": (1, 1),
    },
    "features": {
        "poisson": (0, 0),
    },
    "mode": {
        "unlimited_rate": (0, 0),
        "counts_transmission": (1, 1),
        "queue_limit": (3, 2),
        "mark": (5, 4),
        "loss": (7, 6),
        "loss_at_ingress": (8, 8),
        "loss_in_good_certain": (12, 12),
        "loss_in_bad_certain": (13, 13),
        "good_to_bad_certain": (14, 14),
        "bad_to_good_certain": (15, 15),
    },
}

# Register: field: name of a value: the value.
VALUES = {
    "mode": {
        "queue_limit": {"none": 0, "packets": 1, "bytes": 2},
        "mark": {"none": 0, "packets": 1, "bytes": 2},
        "loss": {"none": 0, "bernoulli": 1, "gilbert_elliott": 2, "poisson": 3},
    },
}
