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
 * What it does is described at gr::nagi::channel_model.
 *
 * Message ports:
 * \li in \c bursts: c32 PDUs with \c number and \c begin_ns, the instant of the first sample in ns
 *     of event time. A burst without \c begin_ns begins where the one before it ended, the first at
 *     0.
 * \li out \c bursts: c32 PDUs with the same dictionary and \c begin_ns, longer by the longest delay
 *
 * A PDU that is something else throws std::invalid_argument.
 */
class NAGI_API channel : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<channel>;

  /*! Throws std::invalid_argument, naming the value, if one is impossible. */
  static sptr make(const channel_config& config);

  /*! What it is now. */
  virtual channel_config config() const = 0;

  /*! Has it be another one from the next burst on; also while the flowgraph runs. Throws as make(),
      and then stays as it is. */
  virtual void set_config(const channel_config& config) = 0;
};

}  // namespace nagi
}  // namespace gr
