# SPDX-License-Identifier: Apache-2.0
"""Executes and collects the runs of an experiment. A campaign that was interrupted resumes."""
