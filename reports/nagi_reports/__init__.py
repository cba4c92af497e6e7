# SPDX-License-Identifier: Apache-2.0
"""From captures to metrics, tables, figures and reports."""

import os

# Figures are files. matplotlib reads this variable when it is imported, and refuses unknown names.
os.environ["MPLBACKEND"] = "agg"
