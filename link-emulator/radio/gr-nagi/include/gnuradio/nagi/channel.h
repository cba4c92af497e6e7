/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/block.h>
#include <gnuradio/nagi/api.h>
#include <gnuradio/nagi/channel_model.h>

#include <memory>

namespace gr {
namespace nagi {

/*!
 * \brief A radio channel for bursts: noise, fading, multipath, frequency offset.
 * \ingroup nagi
 *
 * \details
 * gr::nagi::channel_model describes the computation.
 *
 * Message ports:
 * \li in \c bursts: c32 PDUs with \c number and \c begin_ns, the instant of the first sample in ns
 *     of event time. A burst without \c begin_ns begins at the end of the previous burst; the first
 *     burst begins at 0.
 * \li out \c bursts: c32 PDUs with the dictionary of the burst and \c begin_ns. The received burst
 *     is longer than the sent one by the longest path delay and, with a sample-clock offset, by the
 *     resampling.
 *
 * Any other message throws std::invalid_argument.
 */
class NAGI_API channel : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<channel>;

  /*! Create the block.

      Throws std::invalid_argument, naming the value, if a value is out of range. */
  static sptr make(const channel_config& config);

  /*! Return the current configuration. */
  virtual channel_config config() const = 0;

  /*! Replace the configuration from the next burst on. The flowgraph may be running. Throws
      std::invalid_argument as make() does; the channel then keeps its current configuration. */
  virtual void set_config(const channel_config& config) = 0;
};

}  // namespace nagi
}  // namespace gr
