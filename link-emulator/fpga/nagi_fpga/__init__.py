# SPDX-License-Identifier: Apache-2.0
"""Client of the FPGA link emulator: register map, board access and packet records."""
