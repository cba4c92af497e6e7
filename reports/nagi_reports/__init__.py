# SPDX-License-Identifier: Apache-2.0
"""Metrics of captures and runs, and tables, figures and reports made from them.

The import of this package sets the environment variable MPLBACKEND to agg.
"""

import os

# Figures are only written to files. matplotlib reads this variable when it is imported, and fails
# if the user's environment names a backend that does not exist.
os.environ["MPLBACKEND"] = "agg"
