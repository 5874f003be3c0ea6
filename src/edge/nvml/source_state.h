// The inside of NvmlSource, for its own .cc files.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "edge/nvml/event_session.h"
#include "edge/nvml/gpu_probe.h"
#include "edge/nvml/nvml_source.h"

namespace berth::nvml {

class NvmlSource::State {
 public:
  State(Loop& loop, NvmlOptions options, Random random);
  ~State();

  using InventoryDone = std::function<void(Result<model::GpuInventory>)>;
  using ReadingsDone = std::function<void(std::vector<model::GpuReading>)>;

  void take_inventory(InventoryDone done);
  void read(ReadingsDone done);
  void watch(std::function<void(const model::GpuEvent&)> handler);
  const std::shared_ptr<DriverThreads>& threads() const { return threads_; }
  unsigned long long registered_events() const {
    return session_ == nullptr ? 0 : session_->registered();
  }

 private:
  struct Gpu {
    Gpu(Loop& loop, const std::shared_ptr<DriverThreads>& threads, int index)
        : lane(loop, threads, "nvml-" + std::to_string(index)) {}
    DriverLane lane;
    std::shared_ptr<GpuProbe> probe;
    int probe_generation = -1;
    std::optional<GpuFacts> facts;        // absent: it never answered
    std::optional<GpuPresence> presence;  // what was last told of it
    bool listed = false;                  // in the latest inventory
  };
  // What the driver answers before any GPU is asked.
  struct Basics {
    std::shared_ptr<const Api> api;
    std::string driver_version;
    int cuda_version = 0;
    int count = 0;
  };

  static Result<Basics> ask_basics(std::shared_ptr<const Api> api, bool initialised,
                                   const NvmlOptions& options);
  void start_inventory();
  void got_basics(Basics basics);
  void got_facts(int index, std::optional<Result<GpuFacts>> facts);
  void finish_inventory();
  void failed(const Error& error);
  Error error_now() const;
  void answer_inventory(const Result<model::GpuInventory>& result);
  std::shared_ptr<GpuProbe> probe_of(int index);

  void finish_reading();

  void tell(const model::GpuEvent& event);
  void start_check();
  void got_count(std::optional<Result<Basics>> basics);
  void got_presence(int index, const std::optional<Result<GpuPresence>>& presence);
  void start_events();
  void drop_session();
  void wait_for_event();
  void got_event(const std::shared_ptr<EventSession>& session,
                 const std::optional<EventSession::Answer>& answer);

  Loop& loop_;
  const NvmlOptions options_;
  Random random_;
  const std::shared_ptr<DriverThreads> threads_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  DriverLane main_, events_;
  std::vector<std::unique_ptr<Gpu>> gpus_;  // by index; only grows
  std::shared_ptr<const Api> api_;
  int seen_count_ = 0;  // GPUs when they were last counted
  bool up_ = false;     // initialised, and the last question was answered
  int count_ = 0;       // GPUs of the latest inventory's basics
  int era_ = 0;         // how often it was initialised: handles of older ones are stale
  std::map<int, int> probe_eras_;

  // The inventory that is being taken.
  std::vector<InventoryDone> asks_;
  bool taking_ = false;
  int facts_missing_ = 0;
  Basics basics_;

  // Failures.
  std::optional<Error> error_;
  std::int64_t next_try_ = 0, retry_delay_ = 0;
  Loop::Timer retry_ = 0;

  // The reading that is being taken.
  std::vector<ReadingsDone> reading_asks_;
  std::map<int, model::GpuReading> readings_;
  int readings_missing_ = 0;
  bool reading_ = false;

  std::function<void(const model::GpuEvent&)> handler_;
  Loop::Timer check_ = 0;
  std::shared_ptr<EventSession> session_;
  int session_count_ = 0;
  Loop::Timer session_retry_ = 0;
  std::int64_t next_list_ = 0, list_until_ = 0;  // when MIG instances are listed
};

}  // namespace berth::nvml
