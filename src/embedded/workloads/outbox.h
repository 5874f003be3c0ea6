// Calls that wait their turn: at most so many are under way at once, first come first served.
//
// start(done) begins one call; done() is called once, then or later. After the Outbox is gone,
// nothing is started and done() does nothing. On the loop's thread. Not a queue that strangers can
// grow: an owner pushes at most one piece of work for each object it holds.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

namespace berth::sim {

class Outbox {
 public:
  using Done = std::function<void()>;
  using Start = std::function<void(Done)>;

  explicit Outbox(std::size_t at_once) : state_(std::make_shared<State>()) {
    state_->free = at_once == 0 ? 1 : at_once;
  }

  void push(Start start) {
    state_->waiting.push_back(std::move(start));
    pump(state_);
  }
  std::size_t waiting() const { return state_->waiting.size(); }

 private:
  struct State {
    std::deque<Start> waiting;
    std::size_t free = 1;
    bool pumping = false;
  };

  static void pump(const std::shared_ptr<State>& state) {
    if (state->pumping) return;  // a start that ends at once comes back here
    state->pumping = true;
    while (state->free > 0 && !state->waiting.empty()) {
      Start start = std::move(state->waiting.front());
      state->waiting.pop_front();
      --state->free;
      start([weak = std::weak_ptr<State>(state), ended = false]() mutable {
        const std::shared_ptr<State> alive = weak.lock();
        if (alive == nullptr || std::exchange(ended, true)) return;
        ++alive->free;
        pump(alive);
      });
    }
    state->pumping = false;
  }

  std::shared_ptr<State> state_;
};

}  // namespace berth::sim
