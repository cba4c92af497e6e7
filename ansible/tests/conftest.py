# SPDX-License-Identifier: Apache-2.0
"""Throw-away hosts for the tests of this directory."""

from throw_away import boot_host

__all__ = ["boot_host"]
