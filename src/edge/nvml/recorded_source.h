// A GpuSource that plays a recording: the inventory as it was, readings in turn (the last one
// repeats), events by their time after watch(). MIG layouts can be changed as on the machine; they
// last as long as the source. On the loop's thread alone; no threads of its own.
#pragma once

#include <cstddef>
#include <memory>

#include "base/loop.h"
#include "edge/nvml/recording.h"
#include "node/discover/gpu_source.h"
#include "node/partition/mig_board.h"

namespace berth::nvml {

class RecordedSource final : public discover::GpuSource, public partition::MigDriver {
 public:
  RecordedSource(Loop& loop, Recording recording);
  ~RecordedSource() override;

  void take_inventory(std::function<void(Result<model::GpuInventory>)> done) override;
  void read(std::function<void(std::vector<model::GpuReading>)> done) override;
  void watch(std::function<void(const model::GpuEvent&)> handler) override;
  void look(std::function<void(Result<std::vector<partition::MigGpu>>)> done) override;
  void carry_out(const partition::MigStep& step, std::function<void(Status)> done) override;

 private:
  void tell_next();

  Loop& loop_;
  Recording recording_;
  partition::MigBoard board_;
  bool listed_ = false;  // an inventory was taken
  std::size_t next_sample_ = 0, next_event_ = 0;
  std::int64_t watched_at_ = 0;
  std::function<void(const model::GpuEvent&)> handler_;
  Loop::Timer timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace berth::nvml
