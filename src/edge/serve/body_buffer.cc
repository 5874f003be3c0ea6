#include "edge/serve/body_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace berth::serve {

void BodyBuffer::Unmap::operator()(char* block) const { munmap(block, kBlock); }

std::size_t BodyBuffer::size() const {
  return blocks_.empty() ? small_.size() : small_.size() + (blocks_.size() - 1) * kBlock + filled_;
}

bool BodyBuffer::append(std::string_view bytes) {
  if (blocks_.empty() && small_.size() + bytes.size() <= kSmall) {
    small_ += bytes;
    return true;
  }
  while (!bytes.empty()) {
    if (filled_ == kBlock) {
      void* block =
          mmap(nullptr, kBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (block == MAP_FAILED) return false;
      blocks_.emplace_back(static_cast<char*>(block));
      filled_ = 0;
    }
    const std::size_t here = std::min(bytes.size(), kBlock - filled_);
    std::memcpy(blocks_.back().get() + filled_, bytes.data(), here);
    filled_ += here;
    bytes.remove_prefix(here);
  }
  return true;
}

std::string BodyBuffer::take() {
  std::string out = std::exchange(small_, {});
  if (blocks_.empty()) return out;
  const std::size_t last = std::exchange(filled_, kBlock);
  out.reserve(out.size() + (blocks_.size() - 1) * kBlock + last + kSpare);
  for (auto& block : blocks_) {
    out.append(block.get(), &block == &blocks_.back() ? last : kBlock);
    block.reset();  // what is copied is not held twice
  }
  blocks_.clear();
  return out;
}

}  // namespace berth::serve
