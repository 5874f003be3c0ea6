// The bytes of a body as they arrive. For edge/serve/ alone.
//
// A stranger decides how much there is and when it ends, so memory is what has arrived: no
// doubling, and blocks that go back to the system at once and not to a heap that a flood left in
// holes. One owner, one thread. Cost: one copy more than a string for bodies over kSmall.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace berth::serve {

class BodyBuffer {
 public:
  static constexpr std::size_t kSmall = 64 * 1024;   // held in a string
  static constexpr std::size_t kBlock = 256 * 1024;  // of the rest
  static constexpr std::size_t kSpare = 64;  // room behind a body, so that a reader may pad it

  bool append(std::string_view bytes);  // false: the system has no memory left
  std::size_t size() const;
  std::size_t held() const { return small_.capacity() + size() - small_.size(); }
  std::string take();  // in one piece; the buffer is empty then

 private:
  struct Unmap {
    void operator()(char* block) const;
  };
  std::string small_;
  std::vector<std::unique_ptr<char, Unmap>> blocks_;
  std::size_t filled_ = kBlock;  // of the last block
};

}  // namespace berth::serve
