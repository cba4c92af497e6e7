// SPDX-License-Identifier: Apache-2.0
//
// Registers, counters and meters.
#include <algorithm>

#include "program/control.hpp"
#include "program/operation.hpp"

namespace nagi::p4 {

void Control::register_write(const std::string& name, std::uint64_t index, const Bytes& value) {
  Operation operation(state_);
  const Index array = find(state_.program->registers, name, "register");
  const RegisterArray& about = state_.program->registers[array];
  operation.within(name, index, about.size);
  const Words words = words_for(name, value, about.cell.bits);
  const auto at = static_cast<std::ptrdiff_t>(index * about.cell.limbs);
  state_.registers[array].change(state_.transaction, [words, at](Words& cells) {
    std::copy(words.begin(), words.end(), cells.begin() + at);
  });
}

void Control::register_reset(const std::string& name) {
  state_.registers[find(state_.program->registers, name, "register")].change(
      state_.transaction, [](Words& cells) { std::fill(cells.begin(), cells.end(), 0); });
}

void Control::counter_reset(const std::string& name) {
  Operation operation(state_);
  const Index array = find(state_.program->counters, name, "counter");
  const CounterArray& about = state_.program->counters[array];
  const auto zero = [](std::vector<Count>& cells) {
    std::fill(cells.begin(), cells.end(), Count{});
  };
  if (about.is_direct) {
    state_.tables[about.table].change(state_.transaction,
                                      [zero](TableState& entries) { zero(entries.counts()); });
  } else {
    state_.counters[array].change(state_.transaction, zero);
  }
}

void Control::counter_write(const std::string& name, std::uint64_t index, const Count& count) {
  Operation operation(state_);
  const Index array = find(state_.program->counters, name, "counter");
  operation.not_direct(state_.program->counters[array]);
  operation.within(name, index, state_.program->counters[array].size);
  state_.counters[array].change(
      state_.transaction, [index, count](std::vector<Count>& cells) { cells[index] = count; });
}

void Control::direct_counter_write(const std::string& name, Handle handle, const Count& count) {
  Operation operation(state_);
  const Index index = operation.counted(name);
  (void)operation.entry(index, handle);
  state_.tables[index].change(state_.transaction, [handle, count](TableState& entries) {
    // A later operation of the transaction may have deleted the entry.
    if (const auto entry = entries.find_entry(handle)) entries.count(*entry) = count;
  });
}

void Control::meter_rates(const std::string& name, std::uint64_t index,
                          const std::vector<MeterRate>& rates) {
  Operation operation(state_);
  const Index array = find(state_.program->meters, name, "meter");
  const MeterArray& about = state_.program->meters[array];
  operation.not_direct(about);
  operation.within(name, index, about.size);
  const MeterCell cell = operation.rated(about, rates);
  state_.meters[array].change(
      state_.transaction, [index, cell](std::vector<MeterCell>& cells) { cells[index] = cell; });
}

void Control::meter_rates_all(const std::string& name, const std::vector<MeterRate>& rates) {
  Operation operation(state_);
  const Index array = find(state_.program->meters, name, "meter");
  const MeterArray& about = state_.program->meters[array];
  operation.not_direct(about);
  const MeterCell cell = operation.rated(about, rates);
  state_.meters[array].change(state_.transaction, [cell](std::vector<MeterCell>& cells) {
    std::fill(cells.begin(), cells.end(), cell);
  });
}

void Control::direct_meter_rates(const std::string& name, Handle handle,
                                 const std::vector<MeterRate>& rates) {
  Operation operation(state_);
  const Index index = operation.metered(name);
  (void)operation.entry(index, handle);
  const MeterCell cell =
      operation.rated(state_.program->meters[state_.program->tables[index].meter], rates);
  state_.tables[index].change(state_.transaction, [handle, cell](TableState& entries) {
    // A later operation of the transaction may have deleted the entry.
    if (const auto entry = entries.find_entry(handle)) entries.meter(*entry) = cell;
  });
}
}  // namespace nagi::p4
