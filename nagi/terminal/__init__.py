# SPDX-License-Identifier: Apache-2.0
"""Code that subcommands share: consoles, options, progress, and access to hosts and campaigns."""
