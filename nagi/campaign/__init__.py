# SPDX-License-Identifier: Apache-2.0
"""Campaigns: which runs there are, what becomes of them, when there are enough."""
