# SPDX-License-Identifier: Apache-2.0
"""The labs: where runs take place."""
