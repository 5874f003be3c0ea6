// MIG changes by the helper process: `berth agent-helper`, started anew for each look and each
// step, without a shell, with one request on its stdin and one answer on its stdout
// (node/partition/mig_words.h). It alone needs the right to change GPUs (docs/privileges.md).
//
// One at a time, in order. On the loop's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/loop.h"
#include "edge/host/program.h"
#include "node/partition/mig_gpu.h"
#include "node/partition/mig_words.h"

namespace berth::agent {

struct MigHelperOptions {
  std::string path;                      // of the program
  std::vector<std::string> arguments;    // "agent-helper", ...
  std::vector<std::string> environment;  // all that it gets
  std::int64_t deadline_ns = 60'000'000'000;
};

class MigHelper final : public partition::MigDriver {
 public:
  MigHelper(Loop& loop, MigHelperOptions options);
  ~MigHelper() override;

  void look(std::function<void(Result<std::vector<partition::MigGpu>>)> done) override;
  void carry_out(const partition::MigStep& step, std::function<void(Status)> done) override;

 private:
  using Done = std::function<void(Result<std::vector<partition::MigGpu>>)>;
  struct Ask {
    std::string request;
    Done done;
  };
  void ask(const partition::HelperRequest& request, Done done);
  void next();

  const MigHelperOptions options_;
  host::Program program_;
  std::deque<Ask> asks_;  // the first one is under way
};

}  // namespace berth::agent
