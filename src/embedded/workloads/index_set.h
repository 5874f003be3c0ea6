// A set of completion indexes, as Jobs write it: "1,3-5,7".
//
// Intervals in order, never touching. Cost: O(log intervals) to ask, O(intervals) to add.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::sim {

class IndexSet {
 public:
  // What is not an interval is left out, and so is everything from limit on.
  static IndexSet parse(std::string_view text, int limit);

  bool has(int index) const;
  void add(int index);
  void add(int first, int last);
  int size() const { return size_; }
  bool empty() const { return intervals_.empty(); }
  std::string to_string() const;
  const std::vector<std::pair<int, int>>& intervals() const { return intervals_; }
  friend bool operator==(const IndexSet&, const IndexSet&) = default;

 private:
  std::vector<std::pair<int, int>> intervals_;
  int size_ = 0;
};

}  // namespace berth::sim
