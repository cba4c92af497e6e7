# SPDX-License-Identifier: Apache-2.0
"""From captures to metrics, tables, figures and reports."""

import os

# Figures are files. matplotlib reads this when it is imported, and refuses names that it does not
# know.
os.environ["MPLBACKEND"] = "agg"
