# SPDX-License-Identifier: Apache-2.0
"""What subcommands share: consoles, options, progress, and access to hosts and campaigns."""
