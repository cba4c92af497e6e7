# SPDX-License-Identifier: Apache-2.0
"""What subcommands share: consoles, options, progress, hosts, and campaigns as they meet them."""
