# SPDX-License-Identifier: Apache-2.0
"""The subcommands of nagi: their arguments, options and help.

A function that declares a subcommand calls a function of `nagi.commands`, and imports it in its
body: help, completion and errors in the command line need nothing that takes long to import.
"""
