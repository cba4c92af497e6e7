# SPDX-License-Identifier: Apache-2.0
"""The work of subcommands, which `nagi.cli` declares. Its modules are imported when called."""
