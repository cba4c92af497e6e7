# SPDX-License-Identifier: Apache-2.0
"""The FPGA link emulator as programs see it: its registers, its records."""
