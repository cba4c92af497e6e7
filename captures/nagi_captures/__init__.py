# SPDX-License-Identifier: Apache-2.0
"""Captures: packets, flows, drop logs and the clocks of those who made them."""
