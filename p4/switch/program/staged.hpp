// SPDX-License-Identifier: Apache-2.0
//
// What a controller changes while packets pass. Outside a transaction a change is done at once. In
// one it is done to a copy that packets do not see, and which takes its place when the transaction
// ends; so a transaction may last, and be given up, without a packet meeting half of it.
//
// Registers, counters and meters are changed by packets too. What a controller does to those is
// done to the copy, for itself to read, and to the real thing once more at the end.
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

  /// What has a copy: `take_place` is called by commit(), then `forget` at the end of either.
  struct Touched {
    std::function<void()> take_place;
    std::function<void()> forget;
  };
  void touch(Touched one) { touched_.push_back(std::move(one)); }
  /// To be done at the end, if it is a commit, when copies have taken their places.
  void add(std::function<void()> change) { changes_.push_back(std::move(change)); }

 private:
  bool open_ = false;
  std::vector<Touched> touched_;
  std::vector<std::function<void()>> changes_;
};

/// Does not move once a transaction has touched it.
template <typename Value>
class Staged {
 public:
  Staged() = default;
  explicit Staged(Value value) : live(std::move(value)) {}

  Value live;  // what packets meet

  /// What the controller meets.
  [[nodiscard]] const Value& now() const { return next_ ? *next_ : live; }
  /// To be changed by the controller only.
  Value& change(Transaction& transaction) {
    if (!transaction.is_open()) return live;
    replaces_ = true;
    return next(transaction);
  }
  /// Changes what packets change too.
  void change(Transaction& transaction, std::function<void(Value&)> what) {
    if (!transaction.is_open()) {
      what(live);
      return;
    }
    what(next(transaction));
    transaction.add([this, what = std::move(what)] { what(live); });
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
