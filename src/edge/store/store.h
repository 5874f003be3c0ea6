// Where the embedded API server keeps its objects: keys, values and one rising version.
//
// commit() is answered when the writes are durable, in the order of the calls; a batch is there as
// a whole or not at all. After a crash load() gives exactly the batches whose answer was given, and
// maybe some more, in order, without a gap.
//
// A commit that fails for want of room (Code::kExhausted) is as if it had not been called. So are
// all that were called after it, which may build on it, until the owner has taken back what they
// did and calls resume(); from then on writing is tried again. Any other failure is for good: the
// owner stops.
//
// commit() does not wait; the answer comes on the loop. One owner, one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::store {

struct Write {
  std::string key;
  std::string value;
  bool remove = false;
};

class Store {
 public:
  using Visit =
      std::function<void(std::string_view key, std::string_view value, std::uint64_t version)>;

  virtual ~Store() = default;
  // Every key with its value and the version that wrote it, by key; the latest version of all.
  virtual Result<std::uint64_t> load(const Visit& visit) = 0;
  virtual void commit(std::vector<Write> writes, std::uint64_t version,
                      std::function<void(Status)> done) = 0;
  // What was refused for want of room is taken back. Nothing was refused: nothing happens.
  virtual void resume() = 0;
};

}  // namespace berth::store
