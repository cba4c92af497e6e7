/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/block.h>
#include <gnuradio/nagi/api.h>

#include <memory>
#include <string>

namespace gr {
namespace nagi {

/*!
 * \brief The radio's end of a radio socket: receives transmissions from nagi-link and returns their
 * outcomes.
 * \ingroup nagi
 *
 * \details
 * A radio socket is a Unix socket of type SOCK_SEQPACKET. Each direction of a link has its own
 * socket. A message is one transmission, in little-endian order, without padding:
 * \li to the radio: u32 number, u32 mode (0 without rate adaptation), i64 begin_ns, i64 end_ns,
 *     then the IP packet
 * \li from the radio: u32 number, u8 outcome (0 received, 1 not detected, 2 header error, 3 payload
 *     error, 8 receiver busy, 11 not sent, 12 not received), u8 0, i16 SNR in 0.01 dB (-32768 if
 *     not measured), then the IP packet if it was received
 *
 * The flowgraph must answer each transmission exactly once, in order. Otherwise the block throws
 * std::logic_error.
 *
 * Message ports:
 * \li out \c frames: u8 PDUs with \c number (uint64), \c begin_ns, \c end_ns and \c mode (long)
 * \li in \c outcomes: u8 PDUs with \c number, \c outcome or \c fate, and, if measured, \c snr_db
 *
 * When nagi-link closes the socket, the block still sends the outcomes of earlier transmissions
 * while the socket accepts them. Then the block ends, and the blocks that follow end as well, so
 * the flowgraph ends.
 */
class NAGI_API medium_port : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<medium_port>;

  /*!
   * Create the block for a connected socket.
   *
   * \param fd descriptor of the socket. The block closes the descriptor when the block is
   * destroyed.
   *
   * Throws std::invalid_argument if \p fd is no SOCK_SEQPACKET socket; \p fd then remains open.
   */
  static sptr make(int fd);

  /*! Return whether the block has ended because the socket was closed or failed. */
  virtual bool closed() const = 0;
  /*! Return the error that ended the block. The string is empty while the block runs, and if
      nagi-link closed the socket. */
  virtual std::string error() const = 0;
  /*! Return a descriptor that becomes readable when closed() becomes true. The block owns the
      descriptor; callers must not close it. */
  virtual int closed_descriptor() const = 0;
};

}  // namespace nagi
}  // namespace gr
