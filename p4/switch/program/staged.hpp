// SPDX-License-Identifier: Apache-2.0
//
// Values that a controller changes while packets pass. Outside a transaction, a change takes effect
// at once. In a transaction, the change is made to a copy, which packets do not see, and which
// replaces the value when the transaction commits. A transaction may therefore take long, and may
// be rolled back, and no packet sees only a part of its changes.
//
// Packets also change registers, counters and meters. A controller's change of such a value is made
// to the copy, so that the controller can read it in the transaction, and is repeated on the live
// value at the commit, so that changes by packets in the meantime are not lost.
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

  /// A value that has a copy. `take_place` replaces the value by the copy; commit() calls it.
  /// `forget` deletes the copy; commit() and roll_back() call it at their end.
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

/// A value of which a transaction may have a copy. The Staged must not be moved while a transaction
/// has a copy of its value.
template <typename Value>
class Staged {
 public:
  Staged() = default;
  explicit Staged(Value value) : live(std::move(value)) {}

  Value live;  // the value that packets see

  /// Return the value that the controller sees: the copy if there is one.
  [[nodiscard]] const Value& now() const { return next_ ? *next_ : live; }
  /// Return the value, or its copy in a transaction, so that the caller can change it. Only for
  /// values that packets do not change.
  Value& change(Transaction& transaction) {
    if (!transaction.is_open()) return live;
    replaces_ = true;
    return next(transaction);
  }
  /// Change a value that packets also change: call `change_value` on the value, or in a transaction
  /// on the copy, and at the commit on the value.
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

  std::optional<Value> next_;  // the copy
  bool replaces_ = false;      // whether the copy replaces the value at the commit
};

}  // namespace nagi::p4
