# SPDX-License-Identifier: Apache-2.0
"""Links that the FPGA core carries, in a simulation or on a board."""
