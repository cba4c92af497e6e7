# SPDX-License-Identifier: Apache-2.0
"""Metrics of captures and runs, and tables, figures and reports of them."""

import os

# Figures are only written to files. matplotlib reads this variable when it is imported, and fails
# if the user's environment names a backend that does not exist.
os.environ["MPLBACKEND"] = "agg"
