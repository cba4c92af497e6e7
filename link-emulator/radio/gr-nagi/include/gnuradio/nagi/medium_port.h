/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/block.h>
#include <gnuradio/nagi/api.h>

#include <memory>
#include <string>

namespace gr {
namespace nagi {

/*!
 * \brief The radio's end of a carrier: nagi-link hands over transmissions, and gets what became of
 * them.
 * \ingroup nagi
 *
 * \details
 * A carrier is a Unix socket of type SOCK_SEQPACKET, one for each direction of a link. A message is
 * one transmission, in little-endian order, without gaps:
 * \li to the radio: u32 number, u32 0, i64 begin_ns, i64 end_ns, then the IP packet
 * \li from the radio: u32 number, u8 outcome (0 received, 1 not detected, 2 header error, 3 payload
 *     error), u8 0, i16 SNR in 0.01 dB (-32768: not measured), then the IP packet if it was
 *     received
 *
 * Every transmission is answered exactly once, in order: anything else is an error in the flowgraph
 * and throws std::logic_error.
 *
 * Message ports:
 * \li out \c frames: u8 PDUs with \c number (uint64), \c begin_ns and \c end_ns (long)
 * \li in \c outcomes: u8 PDUs with \c number, \c outcome and, if measured, \c snr_db
 *
 * When the other end closes the socket, what was sent before is still answered as far as somebody
 * listens. Then this block is done, and so are all that follow it: the flowgraph ends.
 */
class NAGI_API medium_port : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<medium_port>;

  /*!
   * \param fd the socket, connected. The block closes it when it goes.
   *
   * Throws std::invalid_argument if it is no such socket; it is then not closed.
   */
  static sptr make(int fd);

  /*! Whether the carrier has come to its end. */
  virtual bool closed() const = 0;
  /*! Why, if it was not that the other end closed it; else empty. */
  virtual std::string error() const = 0;
  /*! A descriptor that is readable once closed() is true: for those who wait. Not theirs to close.
   */
  virtual int closed_descriptor() const = 0;
};

}  // namespace nagi
}  // namespace gr
