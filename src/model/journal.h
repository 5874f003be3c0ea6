// Which nodes changed, in order: how a cache that has seen one copy of a state catches up with
// another copy without looking at every node.
//
// A journal is a position in a tree of chunks. Copies share the chunks up to where they part; each
// appends to a chunk of its own, so a chunk has one writer and what lies below any mark never
// changes. Memory: at most kDepth chunks hang together; then a new tree begins, and whoever has
// seen the old one has to look at everything once. Thread-safety: as ClusterState.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace berth::model {

class Journal {
  struct Chunk;

 public:
  static constexpr std::uint32_t kChunk = 256, kDepth = 256;

  struct Mark {  // a moment in the history
    std::shared_ptr<const Chunk> chunk;
    std::uint32_t length = 0;
    friend bool operator==(const Mark&, const Mark&) = default;
  };

  Journal() = default;
  Journal(const Journal& other) : mark_(other.mark_) {}
  Journal(Journal&& other) noexcept
      : mark_(std::move(other.mark_)), own_(std::exchange(other.own_, nullptr)) {}
  Journal& operator=(const Journal& other) {
    if (this != &other) *this = Journal(other);
    return *this;
  }
  Journal& operator=(Journal&& other) noexcept {
    mark_ = std::move(other.mark_);
    own_ = std::exchange(other.own_, nullptr);
    return *this;
  }
  ~Journal() = default;

  const Mark& now() const { return mark_; }

  void add(std::uint32_t slot) {
    if (own_ == nullptr || mark_.length == kChunk) grow();
    own_->slots[mark_.length++] = slot;
  }

  // The slots that changed between two moments, some perhaps twice, appended to out. False when
  // the histories do not meet or differ by more than most; out is then of no use.
  static bool between(Mark a, Mark b, std::size_t most, std::vector<std::uint32_t>& out) {
    while (a.chunk != b.chunk) {
      if (a.chunk == nullptr || b.chunk == nullptr || out.size() > most) return false;
      Mark& deeper = a.chunk->depth >= b.chunk->depth ? a : b;
      append(deeper, 0, deeper.length, out);
      deeper = Mark(deeper.chunk->parent);
    }
    if (a.chunk == nullptr) return false;
    append(a, std::min(a.length, b.length), std::max(a.length, b.length), out);
    return out.size() <= most;
  }

 private:
  struct Chunk {
    Mark parent;
    std::uint32_t depth = 0;
    std::array<std::uint32_t, kChunk> slots{};
  };

  static void append(const Mark& of, std::uint32_t from, std::uint32_t to,
                     std::vector<std::uint32_t>& out) {
    const auto* slots = of.chunk->slots.data();
    out.insert(out.end(), slots + from, slots + to);
  }

  void grow() {
    auto chunk = std::make_shared<Chunk>();
    if (mark_.chunk && mark_.chunk->depth + 1 < kDepth) {
      chunk->parent = std::move(mark_);
      chunk->depth = chunk->parent.chunk->depth + 1;
    }
    own_ = chunk.get();
    mark_.chunk = std::move(chunk);
    mark_.length = 0;
  }

  Mark mark_;
  Chunk* own_ = nullptr;  // mark_.chunk, where this journal may append to it
};

}  // namespace berth::model
