# SPDX-License-Identifier: Apache-2.0
"""The work of subcommands. `nagi.cli` declares a subcommand, and imports its module at the call."""
