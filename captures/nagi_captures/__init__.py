# SPDX-License-Identifier: Apache-2.0
"""Captures: packets, flows, drop logs and clocks of capturing hosts."""
