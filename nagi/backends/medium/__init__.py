# SPDX-License-Identifier: Apache-2.0
"""The backend `medium`: shared media, whose stations contend by IEEE 802.11's DCF."""
