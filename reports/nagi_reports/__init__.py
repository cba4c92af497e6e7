# SPDX-License-Identifier: Apache-2.0
"""From captures to tables, figures and a report."""
