// Which counters may count pods of a shape, and which shapes a counter may count, without asking
// everybody: candidates share a namespace, a label that a selector wants, or an owner. Whoever asks
// still looks at each of them (counts(), matches()).
//
// Adding, removing and finding cost what a shape has labels and what is found, however much there
// is. Of one loop, as the ShapeBook is.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/shape.h"

namespace berth::model {

class MatchIndex {
 public:
  void add(const Counter& counter);
  void remove(const Counter& counter);
  void add(const Shape& shape);
  void remove(const Shape& shape);

  // Indices, none left out, each once.
  std::vector<std::uint32_t> counters_for(const Shape& shape) const;
  std::vector<std::uint32_t> shapes_for(const Counter& counter) const;

 private:
  using Key = std::uint64_t;

  // Lists of numbers by key, all in one pool. Equal keys of different things make a list longer.
  class Lists {
   public:
    void add(Key key, std::uint32_t owner);
    void remove_all(std::uint32_t owner);
    std::uint32_t size(Key key) const;
    void append(Key key, std::vector<std::uint32_t>& out) const;
    void append_all(std::vector<std::uint32_t>& out) const;

   private:
    static constexpr std::uint32_t kNone = UINT32_MAX;
    struct Link {
      Key key = 0;
      std::uint32_t owner = kNone, before = kNone, after = kNone;
      std::uint32_t sibling = kNone;  // the owner's next
    };
    struct List {
      std::uint32_t first = kNone, size = 0;
    };
    boost::unordered_flat_map<Key, List> lists_;
    std::vector<Link> links_;
    std::vector<std::uint32_t> free_, of_;  // of_: an owner's first link
  };

  static std::vector<Key> keys_of(const Counter& counter);

  Lists counters_, shapes_;
};

}  // namespace berth::model
