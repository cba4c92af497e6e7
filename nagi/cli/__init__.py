# SPDX-License-Identifier: Apache-2.0
"""The subcommands of nagi: their arguments, options and help.

A function that declares a subcommand imports a function of `nagi.commands` in its body, and calls
that function. Help, completion and errors in the command line therefore need no slow imports.
"""
