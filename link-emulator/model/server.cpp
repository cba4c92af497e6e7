// SPDX-License-Identifier: Apache-2.0
#include "model/server.hpp"

namespace nagi::model {

namespace {

template <class... Cases>
struct Match : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Match(Cases...) -> Match<Cases...>;

Instant instant_of(const Opportunities& all, std::uint64_t number) {
  const auto cycle = static_cast<std::int64_t>(number / all.at.size());
  return Instant{cycle * all.period + all.at[number % all.at.size()]};
}

/// Return the number of the first opportunity at `from` or later.
std::uint64_t first_from(const Opportunities& all, Instant from) {
  const auto cycle = static_cast<std::uint64_t>(from.time_since_epoch() / all.period);
  const Duration offset = from.time_since_epoch() % all.period;
  const auto found = std::lower_bound(all.at.begin(), all.at.end(), offset);
  std::uint64_t number = cycle * all.at.size() + static_cast<std::uint64_t>(found - all.at.begin());
  // The last opportunities of a period may coincide with the beginning of the next period.
  while (number > 0 && instant_of(all, number - 1) >= from) --number;
  return number;
}

/// Return the work that a trace allows per period, in units of 10^-9 bits.
unsigned __int128 work_per_period(const Trace<Bitrate>& trace) {
  unsigned __int128 work = 0;
  for (std::size_t i = 0; i < trace.steps.size(); ++i) {
    const Duration end = i + 1 < trace.steps.size() ? trace.steps[i + 1].at : trace.period;
    work += static_cast<unsigned __int128>(trace.steps[i].value.bits_per_second) *
            static_cast<std::uint64_t>((end - trace.steps[i].at).count());
  }
  return work;
}

}  // namespace

std::optional<Bitrate> mean_rate(const RateConfig& rate) {
  using Wide = unsigned __int128;
  return std::visit(
      Match{[](Unlimited) -> std::optional<Bitrate> { return std::nullopt; },
            [](Bitrate constant) -> std::optional<Bitrate> { return constant; },
            [](const TokenBucket& bucket) -> std::optional<Bitrate> { return bucket.rate; },
            [](const Trace<Bitrate>& trace) -> std::optional<Bitrate> {
              const Wide bits = work_per_period(trace);
              return Bitrate{static_cast<std::uint64_t>(
                  bits / static_cast<std::uint64_t>(trace.period.count()))};
            },
            [](const Opportunities& all) -> std::optional<Bitrate> {
              const Wide bits = Wide{all.at.size()} * all.bytes_each.count * 8 * 1'000'000'000;
              return Bitrate{saturated(bits / static_cast<std::uint64_t>(all.period.count()))};
            }},
      rate);
}

Instant RateServer::begin(Bytes size, Instant at, bool back_to_back) {
  const bool took_no_time = started_ == at && ended_ == at;
  started_ = at;
  work_ = work_of(size) + (back_to_back || took_no_time ? left_over_ : 0);
  used_before_ = used_;
  const Progress done = serve(work_, at, Instant::max(), used_);
  ended_ = done.at;
  left_over_ = done.left;
  used_ = done.used;
  return done.at;
}

Duration RateServer::air_time(Bytes size, Instant at) const {
  return serve(work_of(size), at, Instant::max(), used_).at - at;
}

Instant RateServer::change(RateConfig rate, Instant at) {
  const Progress before = serve(work_, started_, at, used_before_);
  const bool had_tokens = std::holds_alternative<TokenBucket>(rate_);
  rate_ = std::move(rate);
  started_ = at;
  work_ = before.left;
  used_before_ = Used{};
  if (had_tokens && std::holds_alternative<TokenBucket>(rate_)) used_before_ = before.used;
  const Progress done = serve(work_, at, Instant::max(), used_before_);
  ended_ = done.at;
  left_over_ = done.left;
  used_ = done.used;
  return done.at;
}

RateServer::Progress RateServer::serve(Work work, Instant from, Instant until, Used used) const {
  return std::visit(
      Match{[&](Unlimited) { return Progress{from, 0, {}}; },
            [&](Bitrate rate) { return serve_at(rate, work, from, until); },
            [&](const TokenBucket& bucket) {
              return serve_from_bucket(bucket, work, from, until, used);
            },
            [&](const Trace<Bitrate>& trace) { return serve_along(trace, work, from, until); },
            [&](const Opportunities& all) {
              return serve_at_opportunities(all, work, from, until, used);
            }},
      rate_);
}

RateServer::Progress RateServer::serve_at(Bitrate rate, Work work, Instant from, Instant until) {
  const Work possible =
      Work{rate.bits_per_second} * static_cast<std::uint64_t>((until - from).count());
  if (work > possible) return {until, work - possible, {}};
  const auto whole = static_cast<std::int64_t>(work / rate.bits_per_second);
  return {from + Duration{whole}, work % rate.bits_per_second, {}};
}

RateServer::Progress RateServer::serve_from_bucket(const TokenBucket& bucket, Work work,
                                                   Instant from, Instant until, Used used) {
  using Tokens = __int128;
  const auto full = static_cast<Tokens>(work_of(bucket.burst));
  const auto rate = static_cast<Tokens>(bucket.rate.bits_per_second);
  const Tokens filled =
      used.tokens ? std::min(full, *used.tokens + rate * (from - used.at).count()) : full;
  const Tokens missing = static_cast<Tokens>(work) - filled;
  if (missing <= 0) return {from, 0, {0, from, 0, -missing}};
  const Tokens possible = rate * (until - from).count();
  if (missing > possible) return {until, static_cast<Work>(missing - possible), {0, until, 0, 0}};
  return {from + Duration{static_cast<std::int64_t>(missing / rate)},
          0,
          {0, from + Duration{static_cast<std::int64_t>(missing / rate)}, 0, -(missing % rate)}};
}

RateServer::Progress RateServer::serve_along(const Trace<Bitrate>& trace, Work work, Instant from,
                                             Instant until) {
  const Instant one_period_on = from > until - trace.period ? until : from + trace.period;
  for (;;) {
    if (from == one_period_on && from != until) {
      // Skip all whole periods in one step, because there may be very many.
      const Work work_each = work_per_period(trace);
      const auto possible = static_cast<std::uint64_t>((until - from) / trace.period);
      const auto whole =
          static_cast<std::uint64_t>(std::min<Work>((work - 1) / work_each, possible));
      from += static_cast<std::int64_t>(whole) * trace.period;
      work -= whole * work_each;
    }
    const auto stretch = trace.at(from);
    const Instant end =
        std::min({stretch.end, until, from < one_period_on ? one_period_on : until});
    if (stretch.value.bits_per_second != 0) {
      const Progress done = serve_at(stretch.value, work, from, end);
      // Work that remains at the end of the step is done at the next rate, however little it is.
      if (done.at < end || done.left == 0) return done;
      work = done.left;
    }
    if (end == until) return {until, work, {}};
    from = end;
  }
}

RateServer::Progress RateServer::serve_at_opportunities(const Opportunities& all, Work work,
                                                        Instant from, Instant until, Used used) {
  if (used.at != from) used.left = 0;
  used.next = std::max(used.next, first_from(all, from));
  while (work > used.left) {
    work -= used.left;
    const Instant next = instant_of(all, used.next);
    if (next > until) return {until, work, used};
    used = {used.next + 1, next, work_of(all.bytes_each), std::nullopt};
  }
  used.left -= work;
  return {std::max(used.at, from), 0, used};
}

}  // namespace nagi::model
