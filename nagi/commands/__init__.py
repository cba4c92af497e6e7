# SPDX-License-Identifier: Apache-2.0
"""The work of subcommands. `nagi.cli` declares them, and imports a module when it is called."""
