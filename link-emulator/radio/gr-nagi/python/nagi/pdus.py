# SPDX-License-Identifier: Apache-2.0
"""Converts PDUs to and from Python values, for tests."""

from typing import Any

import numpy as np
import pmt


def pdu(meta: dict[str, Any], data: bytes | np.ndarray) -> Any:
    """Make a PDU of bytes or of complex samples, with integers as GNU Radio's blocks write them."""
    dictionary = pmt.make_dict()
    for key, value in meta.items():
        if key == "number":
            item = pmt.from_uint64(value)
        elif isinstance(value, int):
            item = pmt.from_long(value)
        else:
            item = pmt.from_double(value)
        dictionary = pmt.dict_add(dictionary, pmt.intern(key), item)
    make = pmt.init_u8vector if isinstance(data, bytes) else pmt.init_c32vector
    return pmt.cons(dictionary, make(len(data), list(data)))


def open_pdu(message: Any) -> tuple[dict[str, Any], Any]:
    """Return the dictionary of a PDU, and its bytes or complex samples."""
    meta, data = pmt.to_python(pmt.car(message)) or {}, pmt.cdr(message)
    if pmt.is_u8vector(data):
        return meta, bytes(pmt.u8vector_elements(data))
    return meta, np.array(pmt.c32vector_elements(data), dtype=np.complex64)
