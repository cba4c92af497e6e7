// SPDX-License-Identifier: Apache-2.0
//
// nanobind with the type casters of this module. Every file that converts values must include this
// header. Without <nanobind/stl/string.h>, for example, a conversion of std::string compiles, but
// fails at run time.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nagi::captures::python {

namespace nb = nanobind;

}  // namespace nagi::captures::python
