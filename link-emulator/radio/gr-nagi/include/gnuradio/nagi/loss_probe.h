/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/block.h>
#include <gnuradio/nagi/api.h>

#include <cstdint>
#include <memory>

namespace gr {
namespace nagi {

/*!
 * \brief Counts what became of packets, by cause.
 * \ingroup nagi
 *
 * \details
 * Message ports:
 * \li in \c outcomes: PDUs whose dictionary has \c outcome: 0 received, 1 not detected, 2 header
 *     error, 3 payload error. A PDU without it counts as received if it holds data. Anything else
 *     throws std::invalid_argument, which ends the flowgraph.
 * \li in \c report: any message asks for one on \c losses.
 * \li out \c losses: a dictionary of \c received, \c not_detected, \c header_error and
 *     \c payload_error (uint64).
 */
class NAGI_API loss_probe : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<loss_probe>;
  static sptr make();

  /*! Packets that came through. */
  virtual std::uint64_t received() const = 0;
  /*! Packets whose preamble was not found. */
  virtual std::uint64_t not_detected() const = 0;
  /*! Packets whose PHY header was damaged. */
  virtual std::uint64_t header_errors() const = 0;
  /*! Packets whose frame was damaged. */
  virtual std::uint64_t payload_errors() const = 0;
};

}  // namespace nagi
}  // namespace gr
