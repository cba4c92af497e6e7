// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// TCP-Real's receiver: Zhang and Tsaoussidis, "TCP-Real: Improving Real-time Capabilities of TCP over
// Heterogeneous Networks", NOSSDAV 2001, section 2.2. The sender sends waves; at wave level i a wave has
// 2 i segments. The receiver measures the time from the first to the last segment of each wave (Figure 1):
//
//   rate = expected size of the wave / (last - first);  ratio = rate / rate of the previous wave
//
//                 level above the threshold          level at or below the threshold
//   ratio < 1:    level x (0.618 + 0.382 ratio)      level x (0.382 + 0.618 ratio)
//   ratio >= 1:   level x (0.382 + 0.618 ratio)      level x (0.5 + 0.5 ratio); at most the maximum level
//
// The rate uses the expected size, so a segment that the channel loses does not change it. The wave-decision
// timer handles waves whose last segment is lost: it runs for twice the expected duration of the wave from its
// first segment. After that, the next segment that arrives ends the wave, and the threshold becomes half of the
// level.
//
// The paper does not specify the following. Levels are stored in millionths, between 1 and the maximum, because
// whole levels could never leave level 1. The level in the option is rounded. The new level arrives with the ACK of
// a wave's last segment. By then, earlier ACKs have released all segments of the next wave except one. So a higher
// level applies to the next wave, but a lower level only to the wave after the next one; the next wave is then one
// segment shorter than the previous wave. A retransmitted segment belongs to the wave in which it arrives.
#ifndef NAGI_ARITHMETIC_WAVES_H
#define NAGI_ARITHMETIC_WAVES_H

#include "integers.h"

#define NAGI_ONE 1000000  // levels and ratios are in millionths
#define NAGI_MIN_WAVE 2   // segments
#define NAGI_MAX_RATIO (100 * NAGI_ONE)

struct nagi_waves_limits {
  __u32 initial_level;  // in whole levels, as the threshold and the maximum
  __u32 initial_threshold;
  __u32 max_level;
};

struct nagi_waves {
  __u32 rate;       // of the previous wave, thousandths of a segment per second; 0 before the first
  __u32 level;      // millionths
  __u32 threshold;  // millionths
  __u32 start;      // sequence number of the wave's first byte
  __u32 highest;    // sequence number after the highest byte that has arrived
  __u32 first_us;   // arrival time of the wave's first segment
  __u32 deadline_us;  // time at which the wave-decision timer expires
  __u16 segments;     // number of segments expected in the wave
  __u16 again;        // number of retransmitted segments that arrived in the wave
  __u16 payload;      // largest payload of a segment so far, bytes
  __u8 started;       // a segment has arrived
  __u8 collecting;    // the wave's first segment has arrived
  __u8 has_timer;     // the wave-decision timer runs
};

/// Return the level for the option, rounded to a whole level.
NAGI_INLINE __u32 nagi_waves_level(const struct nagi_waves* waves) {
  return (waves->level + NAGI_ONE / 2) / NAGI_ONE;
}

/// Return the window of a wave level, in segments.
NAGI_INLINE __u32 nagi_wave_window(__u32 level) { return 2 * level; }

/// Initialise the state at the beginning of a connection.
NAGI_INLINE void nagi_waves_start(struct nagi_waves* waves,
                                  const struct nagi_waves_limits* limits) {
  waves->level = nagi_min(limits->initial_level, limits->max_level) * NAGI_ONE;
  waves->threshold = limits->initial_threshold * NAGI_ONE;
  waves->segments = nagi_wave_window(nagi_waves_level(waves));
  waves->rate = 0;
  waves->collecting = waves->has_timer = waves->started = 0;
  waves->payload = 0;
}

/// Return the next level by the rule of Figure 1, in millionths. All divisions round to nearest. Rounding down would
/// lower the level over time if the rate changes up and down by small amounts.
NAGI_INLINE __u32 nagi_waves_next_level(const struct nagi_waves* waves, __u32 rate,
                                        __u32 max_level) {
  __u64 ratio = ((__u64)rate * NAGI_ONE + waves->rate / 2) / waves->rate;
  int is_above = waves->level > waves->threshold;
  __u32
      adjust;  // weight of the ratio, thousandths; the rest of 1000 is the weight of the old level
  __u64 level;

  if (ratio > NAGI_MAX_RATIO) ratio = NAGI_MAX_RATIO;
  if (waves->rate > rate)
    adjust = is_above ? 382 : 618;
  else
    adjust = is_above ? 618 : 500;
  level = ((1000 - adjust) * (__u64)NAGI_ONE + adjust * ratio + 500) / 1000 * waves->level;
  level = (level + NAGI_ONE / 2) / NAGI_ONE;
  if (level < NAGI_ONE) return NAGI_ONE;
  return level > (__u64)max_level * NAGI_ONE ? max_level * NAGI_ONE : level;
}

/// End the wave with a segment that arrived at `now_us`: compute the rate of the wave and the next level. `expired`
/// is true if the wave-decision timer has expired.
NAGI_INLINE void nagi_waves_decide(struct nagi_waves* waves, __u32 now_us, int expired,
                                   __u32 max_level) {
  __u32 duration_us = nagi_max(now_us - waves->first_us, 1);
  __u64 rate = ((__u64)waves->segments * 1000000000 + duration_us / 2) / duration_us;
  __u32 previous_size = nagi_wave_window(nagi_waves_level(waves));
  __u32 size;

  if (expired) waves->threshold = waves->level / 2;
  rate = rate > 0xffffffff ? 0xffffffff : nagi_max(rate, 1);
  if (waves->rate) waves->level = nagi_waves_next_level(waves, rate, max_level);
  waves->rate = rate;
  size = nagi_wave_window(nagi_waves_level(waves));
  if (!expired && size < previous_size) size = nagi_max(size, previous_size - 1);
  waves->segments = nagi_max(size, NAGI_MIN_WAVE);
  waves->collecting = waves->has_timer = 0;
}

/// Begin a wave with a segment that arrived at `now_us`.
NAGI_INLINE void nagi_waves_begin(struct nagi_waves* waves, __u32 now_us) {
  waves->collecting = 1;
  waves->start = waves->highest;
  waves->again = 0;
  waves->first_us = now_us;
  if (!waves->rate) return;
  waves->has_timer = 1;
  waves->deadline_us = now_us + 2000000000ULL * waves->segments / waves->rate;
}

/// Add a segment of `payload` bytes, at sequence number `sequence`, that arrived at `now_us` (modulo 2^32).
NAGI_INLINE void nagi_waves_arrival(struct nagi_waves* waves, __u32 sequence, __u32 payload,
                                    __u32 now_us, const struct nagi_waves_limits* limits) {
  __u32 new_segments;  // segments of the wave that are not retransmissions

  if (payload > waves->payload) waves->payload = payload;
  if (!waves->started) {
    waves->started = 1;
    waves->highest = sequence;
  }
  if (waves->collecting && waves->has_timer && nagi_after(now_us, waves->deadline_us))
    nagi_waves_decide(waves, now_us, 1, limits->max_level);
  if (!waves->collecting) nagi_waves_begin(waves, now_us);
  if (nagi_after(waves->highest, sequence)) waves->again++;
  if (nagi_after(sequence + payload, waves->highest)) waves->highest = sequence + payload;
  new_segments = waves->again < waves->segments ? waves->segments - waves->again : 0;
  if (!nagi_after(waves->start + new_segments * waves->payload, waves->highest))
    nagi_waves_decide(waves, now_us, 0, limits->max_level);
}

#endif
