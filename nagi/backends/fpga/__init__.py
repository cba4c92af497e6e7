# SPDX-License-Identifier: Apache-2.0
"""The backend `fpga`: links that the FPGA core carries, in a simulation or on a board."""
