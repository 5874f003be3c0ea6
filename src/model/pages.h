// Pages<T>: a vector whose copy costs O(pages) and whose first write to a page copies that page.
//
// A page belongs to the one Pages that made it; any other writer copies it first. A copy is a
// snapshot or a fork: dropping it leaves the original as it was, bit for bit. An original that is
// written after being copied must detach() first, so that its next write to each page copies it.
// Each page has a stamp, given by the writer; equal stamps at the same place in two copies of one
// family mean equal contents, which lets caches find what changed without reading it.
// Thread-safety: a Pages is written by one thread; a copy may be read, and copied, on any.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace berth::model {

// Numbers that differ; nothing but equality is ever asked of them.
inline std::uint64_t next_owner() {
  static std::atomic<std::uint64_t> counter{0};
  return counter.fetch_add(1, std::memory_order_relaxed) + 1;
}

// Who may write a shared part in place: a copy is another owner.
class Owner {
 public:
  Owner() = default;
  Owner(const Owner&) {}
  Owner& operator=(const Owner& other) {
    if (this != &other) renew();
    return *this;
  }
  ~Owner() = default;
  void renew() { id_ = next_owner(); }
  bool owns(std::uint64_t id) const { return id == id_; }
  std::uint64_t id() const { return id_; }

 private:
  std::uint64_t id_ = next_owner();
};

template <class T, std::size_t kPageSize = 32>
class Pages {
 public:
  static constexpr std::size_t page_size() { return kPageSize; }

  Pages() = default;
  Pages(const Pages& other) : size_(other.size_), spine_(other.spine_) {}  // owner_ is new
  Pages(Pages&&) noexcept = default;
  Pages& operator=(const Pages& other) {
    if (this != &other) *this = Pages(other);
    return *this;
  }
  Pages& operator=(Pages&&) noexcept = default;
  ~Pages() = default;

  void detach() { owner_ = next_owner(); }

  std::size_t size() const { return size_; }
  std::size_t pages() const { return spine_.size(); }
  std::uint64_t stamp(std::size_t page) const { return spine_[page].stamp; }

  const T& operator[](std::size_t i) const {
    return spine_[i / kPageSize].page->items[i % kPageSize];
  }
  const T* page_data(std::size_t page) const { return spine_[page].page->items.data(); }

  // The element for writing; its page gets the stamp.
  T& write(std::size_t i, std::uint64_t stamp) {
    Slot& slot = spine_[i / kPageSize];
    if (slot.page->owner != owner_) {
      slot.page = std::make_shared<Page>(*slot.page);
      slot.page->owner = owner_;
    }
    slot.stamp = stamp;
    return slot.page->items[i % kPageSize];
  }

  void push_back(T value, std::uint64_t stamp) {
    if (size_ % kPageSize == 0) {
      spine_.push_back({std::make_shared<Page>(), stamp});
      spine_.back().page->owner = owner_;
    }
    write(size_++, stamp) = std::move(value);
  }

  // New elements are T{}; pages of nothing else are one page that nobody owns.
  void resize(std::size_t size, std::uint64_t stamp) {
    while (size_ < size && size_ % kPageSize != 0) push_back(T{}, stamp);
    size_ = size;
    const std::size_t pages = (size + kPageSize - 1) / kPageSize;
    if (pages > spine_.size()) {
      static const std::shared_ptr<Page> blank = std::make_shared<Page>();
      spine_.resize(pages, {blank, stamp});
    }
    spine_.resize(pages);
  }

 private:
  struct Page {
    std::uint64_t owner = 0;
    std::array<T, kPageSize> items{};
  };
  struct Slot {
    std::shared_ptr<Page> page;
    std::uint64_t stamp = 0;
  };

  std::size_t size_ = 0;
  std::vector<Slot> spine_;
  std::uint64_t owner_ = next_owner();
};

}  // namespace berth::model
