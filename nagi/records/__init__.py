# SPDX-License-Identifier: Apache-2.0
"""Reads the records of agents and of the emulator into the tables of a run directory."""
