// A Store that forgets: for tests, and for clusters that need not outlive the process. Answers come
// posted on the loop; fail_after() makes it fail for good, set_full() as a full disk does.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/loop.h"
#include "edge/store/store.h"

namespace berth::store {

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(Loop& loop) : loop_(loop) {}

  Result<std::uint64_t> load(const Visit& visit) override;
  void commit(std::vector<Write> writes, std::uint64_t version,
              std::function<void(Status)> done) override;
  void resume() override { refusing_ = false; }

  void set_full(bool full) { full_ = full; }
  void fail_after(int commits) { left_ = commits; }
  void delay(std::int64_t ns) { delay_ns_ = ns; }  // of every answer: a slow disk

 private:
  struct Entry {
    std::string value;
    std::uint64_t version;
  };
  Loop& loop_;
  std::map<std::string, Entry, std::less<>> entries_;
  std::uint64_t version_ = 0;
  std::int64_t delay_ns_ = 0, due_ns_ = 0;
  bool full_ = false, refusing_ = false;
  int left_ = -1;                                               // commits until it fails; -1: never
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // answers to nobody are dropped
};

}  // namespace berth::store
