# SPDX-License-Identifier: Apache-2.0
"""The formats that nagi's rooms hand to one another. Every file says its `schema_version`."""
