// SPDX-License-Identifier: Apache-2.0
//
// Values that a controller changes while packets pass. Outside a transaction, a change takes effect
// at once. In a transaction, it is made to a copy that packets do not see and that replaces the
// value when the transaction commits. A transaction may therefore last, and be rolled back, without
// a packet that sees half of it.
//
// Packets change registers, counters and meters, too. A controller's change to these is made to the
// copy, for its own reads, and repeated on the live value at the commit.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace nagi::p4 {

class Transaction {
 public:
  [[nodiscard]] bool is_open() const { return open_; }
  void begin() { open_ = true; }
  void commit() {
    for (const Touched& one : touched_) one.take_place();
    for (const auto& change : changes_) change();
    roll_back();
  }
  void roll_back() {
    for (const Touched& one : touched_) one.forget();
    touched_.clear();
    changes_.clear();
    open_ = false;
  }

  /// A value that has a copy: commit() calls `take_place`; commit() and roll_back() then call
  /// `forget`.
  struct Touched {
    std::function<void()> take_place;
    std::function<void()> forget;
  };
  void touch(Touched one) { touched_.push_back(std::move(one)); }
  /// Add a change that commit() makes after the copies have replaced the values.
  void add(std::function<void()> change) { changes_.push_back(std::move(change)); }

 private:
  bool open_ = false;
  std::vector<Touched> touched_;
  std::vector<std::function<void()>> changes_;
};

/// A value of which a transaction may have a copy. It must not move after a transaction has touched
/// it.
template <typename Value>
class Staged {
 public:
  Staged() = default;
  explicit Staged(Value value) : live(std::move(value)) {}

  Value live;  // the value that packets see

  /// Return the value that the controller sees.
  [[nodiscard]] const Value& now() const { return next_ ? *next_ : live; }
  /// Return the value for a change. Only for values that packets do not change.
  Value& change(Transaction& transaction) {
    if (!transaction.is_open()) return live;
    replaces_ = true;
    return next(transaction);
  }
  /// Change a value that packets change as well.
  void change(Transaction& transaction, std::function<void(Value&)> change_value) {
    if (!transaction.is_open()) {
      change_value(live);
      return;
    }
    change_value(next(transaction));
    transaction.add([this, change_value = std::move(change_value)] { change_value(live); });
  }

 private:
  Value& next(Transaction& transaction) {
    if (!next_) {
      next_.emplace(live);
      transaction.touch({[this] { take_place(); }, [this] { forget(); }});
    }
    return *next_;
  }
  void take_place() {
    if (!replaces_) return;
    if constexpr (requires(Value& value) { value.take_measurements(value); }) {
      next_->take_measurements(live);
    }
    std::swap(live, *next_);
  }
  void forget() {
    next_.reset();
    replaces_ = false;
  }

  std::optional<Value> next_;
  bool replaces_ = false;
};

}  // namespace nagi::p4
