/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/block.h>
#include <gnuradio/nagi/api.h>

#include <cstdint>
#include <memory>

namespace gr {
namespace nagi {

/*!
 * \brief A counter of packets by outcome.
 * \ingroup nagi
 *
 * \details
 * Message ports:
 * \li in \c outcomes: PDUs with \c outcome in the dictionary: 0 received, 1 not detected, 2 header
 *     error, 3 payload error. Radio hardware adds \c fate, which overrides \c outcome: 8 receiver
 *     busy, 11 not sent, 12 not received. A PDU with data and without either key counts as
 *     received. Any other message throws std::invalid_argument, which ends the flowgraph.
 * \li in \c report: any message requests a report on \c losses
 * \li out \c losses: a dictionary of the counts (uint64) \c received, \c not_detected,
 *     \c header_error and \c payload_error; also of \c receiver_busy, \c not_sent and
 *     \c not_received if these are above 0
 */
class NAGI_API loss_probe : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<loss_probe>;
  static sptr make();

  /*! Return the number of received packets. */
  virtual std::uint64_t received() const = 0;
  /*! Return the number of packets whose preamble was not detected. */
  virtual std::uint64_t not_detected() const = 0;
  /*! Return the number of packets whose PHY header was damaged. */
  virtual std::uint64_t header_errors() const = 0;
  /*! Return the number of packets whose frame was damaged. */
  virtual std::uint64_t payload_errors() const = 0;
};

}  // namespace nagi
}  // namespace gr
