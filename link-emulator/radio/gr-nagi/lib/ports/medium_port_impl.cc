/* SPDX-License-Identifier: Apache-2.0 */
#include "medium_port_impl.h"

#include <gnuradio/io_signature.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "pdu.h"

namespace gr {
namespace nagi {

static_assert(std::endian::native == std::endian::little,
              "messages are copied without a change of byte order");

namespace {

constexpr const char* me = "medium_port";
constexpr std::size_t longest_packet = 65'535;
constexpr std::int16_t not_measured = std::numeric_limits<std::int16_t>::min();

struct [[gnu::packed]] TransmissionHead {
  std::uint32_t number;
  std::uint32_t mode;
  std::int64_t begin_ns;
  std::int64_t end_ns;
};
static_assert(sizeof(TransmissionHead) == 24);

struct [[gnu::packed]] AnswerHead {
  std::uint32_t number;
  std::uint8_t outcome;
  std::uint8_t zero;
  std::int16_t snr_centibels;
};
static_assert(sizeof(AnswerHead) == 8);

std::int16_t snr_of(const Pdu& pdu) {
  const pmt::pmt_t value = pmt::dict_ref(pdu.meta, key::snr_db(), pmt::PMT_NIL);
  if (!pmt::is_number(value)) return not_measured;
  const double snr_db = pmt::to_double(value);
  if (std::isnan(snr_db)) return not_measured;
  constexpr double maximum = std::numeric_limits<std::int16_t>::max();
  return static_cast<std::int16_t>(std::lround(std::clamp(snr_db * 100.0, -maximum, maximum)));
}

void check(int fd) {
  int type = 0;
  socklen_t length = sizeof type;
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_SEQPACKET) {
    throw std::invalid_argument(std::string(me) + ": descriptor " + std::to_string(fd) +
                                " is not a socket of type SOCK_SEQPACKET");
  }
}

}  // namespace

medium_port::sptr medium_port::make(int fd) {
  check(fd);
  return gnuradio::make_block_sptr<medium_port_impl>(fd);
}

medium_port_impl::medium_port_impl(int fd)
    : gr::block(me, gr::io_signature::make(0, 0, 0), gr::io_signature::make(0, 0, 0)), socket_(fd) {
  message_port_register_out(pmt::mp("frames"));
  message_port_register_in(pmt::mp("outcomes"));
  set_msg_handler(pmt::mp("outcomes"), [this](const pmt::pmt_t& message) { answer(message); });
}

medium_port_impl::~medium_port_impl() { stop(); }

bool medium_port_impl::start() {
  stopping_.clear();
  if (!reader_.joinable()) reader_ = std::thread([this] { read_transmissions(); });
  return gr::block::start();
}

bool medium_port_impl::stop() {
  stopping_.set();
  if (reader_.joinable()) reader_.join();
  return gr::block::stop();
}

std::string medium_port_impl::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void medium_port_impl::read_transmissions() {
  std::vector<std::uint8_t> buffer(sizeof(TransmissionHead) + longest_packet);
  while (wait_readable()) {
    const ssize_t received = recv(socket_.get(), buffer.data(), buffer.size(), MSG_TRUNC);
    if (received < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (received < 0 && errno != ECONNRESET) return end_of_transmissions(std::strerror(errno));
    if (received <= 0) return end_of_transmissions("");
    const auto length = static_cast<std::size_t>(received);
    if (length <= sizeof(TransmissionHead) || length > buffer.size()) {
      return end_of_transmissions("a transmission has " + std::to_string(length) +
                                  " bytes; it must have a head of 24 and a packet of 1 to 65535");
    }
    take_in({buffer.data(), length});
  }
}

/// Wait until the socket is readable. Return false if this block is being stopped.
bool medium_port_impl::wait_readable() const {
  pollfd descriptors[] = {{socket_.get(), POLLIN, 0}, {stopping_.descriptor(), POLLIN, 0}};
  while (poll(descriptors, 2, -1) < 0 && errno == EINTR) {
  }
  return descriptors[1].revents == 0;
}

void medium_port_impl::take_in(std::span<const std::uint8_t> message) {
  TransmissionHead head{};
  std::memcpy(&head, message.data(), sizeof head);
  {
    const std::lock_guard lock(mutex_);
    unanswered_.push_back(head.number);
  }
  pmt::pmt_t meta = pmt::make_dict();
  meta = pmt::dict_add(meta, key::number(), pmt::from_uint64(head.number));
  meta = pmt::dict_add(meta, key::begin_ns(), pmt::from_long(head.begin_ns));
  meta = pmt::dict_add(meta, key::mode(), pmt::from_long(static_cast<long>(head.mode)));
  meta = pmt::dict_add(meta, pmt::mp("end_ns"), pmt::from_long(head.end_ns));
  message_port_pub(pmt::mp("frames"), make_pdu(meta, message.subspan(sizeof head)));
}

void medium_port_impl::answer(const pmt::pmt_t& message) {
  const Pdu pdu = open_pdu(message, me);
  // outcome_of() returns the fate of a burst that no receiver has seen.
  const auto outcome = outcome_of(pdu, me);
  if (!outcome)
    throw std::invalid_argument(std::string(me) + ": a PDU has neither \"outcome\" nor \"fate\"");
  AnswerHead head{static_cast<std::uint32_t>(number_of(pdu, me)),
                  static_cast<std::uint8_t>(*outcome), 0, snr_of(pdu)};
  std::span<const std::uint8_t> packet;
  if (*outcome == Outcome::received) packet = bytes_of(pdu, me);
  record_answer(head.number);

  iovec parts[] = {{&head, sizeof head}, {const_cast<std::uint8_t*>(packet.data()), packet.size()}};
  msghdr out{};
  out.msg_iov = parts;
  out.msg_iovlen = packet.empty() ? 1 : 2;
  while (!closed_ && sendmsg(socket_.get(), &out, MSG_NOSIGNAL) < 0) {
    if (errno == EAGAIN) {  // the socket is non-blocking, so wait here
      pollfd writable{socket_.get(), POLLOUT, 0};
      poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      return close(errno == EPIPE || errno == ECONNRESET ? "" : std::strerror(errno));
    }
  }
  const bool last = [this] {
    const std::lock_guard lock(mutex_);
    return ended_ && unanswered_.empty();
  }();
  if (last) close("");
}

void medium_port_impl::record_answer(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  if (unanswered_.empty() || unanswered_.front() != number) {
    throw std::logic_error(std::string(me) + ": transmission " + std::to_string(number) +
                           " answered, expected " +
                           (unanswered_.empty() ? "none" : std::to_string(unanswered_.front())));
  }
  unanswered_.pop_front();
}

void medium_port_impl::end_of_transmissions(const std::string& error) {
  const bool last = [&] {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    return !error.empty() || unanswered_.empty();
  }();
  if (last) close(error);
}

void medium_port_impl::close(const std::string& error) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    error_ = error;
    closed_ = true;
  }
  if (!error.empty()) GR_LOG_ERROR(d_logger, "the radio socket failed: " + error);
  closed_event_.set();
  // This message ends a block that has only message ports. The block then notifies the blocks after
  // it.
  _post(pmt::mp("system"), pmt::cons(pmt::mp("done"), pmt::from_long(1)));
}

}  // namespace nagi
}  // namespace gr
