// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "native/python/nanobind.hpp"

namespace nagi::captures::python {

constexpr std::int64_t packets_between_signals = 200'000;

/// Run Python's signal handlers for signals that have arrived, and throw their exception. The
/// caller must have released the interpreter lock.
inline void check_signals() {
  const nb::gil_scoped_acquire interpreter;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace nagi::captures::python
