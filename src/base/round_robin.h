// Things that wait, each for somebody; whoever has some waiting gets every turn's one, so that
// nobody waits for all that another one brought. Each one's own leave in the order they came.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace berth {

template <class T>
class RoundRobin {
 public:
  void push(std::string_view whose, T thing) {
    auto it = lines_.find(whose);
    if (it == lines_.end()) {
      it = lines_.emplace(whose, std::deque<T>()).first;
      order_.push_back(it);
    }
    it->second.push_back(std::move(thing));
    ++size_;
  }

  // Only where !empty().
  T pop() {
    const auto line = order_.front();
    order_.pop_front();
    T out = std::move(line->second.front());
    line->second.pop_front();
    --size_;
    if (line->second.empty()) {
      lines_.erase(line);
    } else {
      order_.push_back(line);
    }
    return out;
  }

  void clear() {
    order_.clear();
    lines_.clear();
    size_ = 0;
  }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

 private:
  using Lines = std::map<std::string, std::deque<T>, std::less<>>;
  Lines lines_;  // none is empty
  std::deque<typename Lines::iterator> order_;
  std::size_t size_ = 0;
};

}  // namespace berth
