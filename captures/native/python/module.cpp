// SPDX-License-Identifier: Apache-2.0
//
// Defines the module nagi_captures_native. captures/nagi_captures/capture.py makes tables of the
// columns that it returns. Columns are NumPy arrays that take over the reader's memory without a
// copy. While a file is read, other threads can use the interpreter. Signals are checked after
// every 200,000 packets.
#include "native/python/module.hpp"

#include "native/capture_file.hpp"

using namespace nagi::captures;
using namespace nagi::captures::python;

NB_MODULE(nagi_captures_native, module) {
  module.doc() = "Reads captures; see nagi_captures.capture.";
  static PyObject* capture_error =
      PyErr_NewException("nagi_captures_native.Refused", PyExc_Exception, nullptr);
  module.attr("Refused") = nb::handle(capture_error);
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const CaptureError& error) {
      const nb::tuple description = nb::make_tuple(error.what(), error.cure());
      PyErr_SetObject(capture_error, description.ptr());
    }
  });
  module.def("scan", &scan, nb::arg("path"), nb::arg("start_ns").none(), nb::arg("end_ns").none(),
             nb::arg("interval_ns"), nb::arg("relative"), nb::arg("columns"), nb::arg("tunnels"));
  module.def("rows", &rows, nb::arg("path"), nb::arg("start_ns").none(), nb::arg("end_ns").none(),
             nb::arg("relative"), nb::arg("tunnels"), nb::arg("by"), nb::arg("limit"));
  module.def("trace", &trace, nb::arg("path"), nb::arg("connection"), nb::arg("direction"),
             nb::arg("tunnels"));
  module.def("match", &match, nb::arg("sent"), nb::arg("received"), nb::arg("start_ns").none(),
             nb::arg("end_ns").none(), nb::arg("complete"), nb::arg("sent_clock"),
             nb::arg("received_clock"));
  add_packet_reader(module);
}
