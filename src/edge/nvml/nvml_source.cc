#include "edge/nvml/nvml_source.h"

#include <algorithm>
#include <array>
#include <utility>

#include "edge/nvml/source_state.h"

namespace berth::nvml {

namespace {

constexpr int kMostGpus = 64;  // a bound for a confused driver
constexpr std::int64_t kSecond = 1'000'000'000;

// The links by index, once every GPU has told its own.
void join_links(const std::vector<const GpuFacts*>& facts, model::GpuInventory& inventory) {
  int size = 0;
  for (const GpuFacts* one : facts) size = std::max(size, one->gpu.index + 1);
  for (std::size_t i = 0; i < facts.size(); ++i) {
    std::vector<int> links(static_cast<std::size_t>(size), 0);
    bool any = false;
    for (const GpuFacts* other : facts) {
      if (other == facts[i]) continue;
      const auto peer = facts[i]->peer_links.find(other->gpu.pci_bus_id);
      int count = peer == facts[i]->peer_links.end() ? 0 : peer->second;
      count += std::min(facts[i]->switch_links, other->switch_links);
      links[static_cast<std::size_t>(other->gpu.index)] = count;
      any = any || count > 0;
    }
    if (any) inventory.gpus[i].nvlinks = std::move(links);
  }
}

}  // namespace

NvmlSource::NvmlSource(Loop& loop, NvmlOptions options, Random random)
    : state_(std::make_unique<State>(loop, std::move(options), random)) {}
NvmlSource::~NvmlSource() = default;

void NvmlSource::take_inventory(std::function<void(Result<model::GpuInventory>)> done) {
  state_->take_inventory(std::move(done));
}
void NvmlSource::read(std::function<void(std::vector<model::GpuReading>)> done) {
  state_->read(std::move(done));
}
void NvmlSource::watch(std::function<void(const model::GpuEvent&)> handler) {
  state_->watch(std::move(handler));
}
std::shared_ptr<DriverThreads> NvmlSource::threads() const { return state_->threads(); }
unsigned long long NvmlSource::registered_events() const { return state_->registered_events(); }

NvmlSource::State::State(Loop& loop, NvmlOptions options, Random random)
    : loop_(loop),
      options_(std::move(options)),
      random_(random),
      threads_(std::make_shared<DriverThreads>(options_.most_hanging_threads)),
      main_(loop, threads_, "nvml-inventory"),
      events_(loop, threads_, "nvml-events") {}

NvmlSource::State::~State() {
  alive_.reset();
  for (const Loop::Timer timer : {retry_, check_, session_retry_}) loop_.cancel(timer);
  for (const std::unique_ptr<Gpu>& gpu : gpus_) {
    gpu->lane.close([probe = std::move(gpu->probe)]() mutable { probe.reset(); });
  }
  main_.close();
  if (session_ != nullptr) session_->close();
  events_.close([session = std::move(session_)] {
    if (session != nullptr) session->wait(0);
  });
  threads_->wait_ended(options_.exit_grace_ns);
}

// ---- inventory ----

Result<NvmlSource::State::Basics> NvmlSource::State::ask_basics(std::shared_ptr<const Api> api,
                                                                bool initialised,
                                                                const NvmlOptions& options) {
  if (api == nullptr) {
    BERTH_TRY(api, load_nvml(options.library, options.driver_root));
  }
  if (!initialised) {
    const Return code = call(api->init);
    if (code != kSuccess) return Error(Code::kUnavailable, failure("nvmlInit", code));
  }
  Basics basics{std::move(api), "", 0, 0};
  unsigned int count = 0;
  const Return code = call(basics.api->device_count, &count);
  if (code != kSuccess) return Error(Code::kUnavailable, failure("nvmlDeviceGetCount", code));
  basics.count = static_cast<int>(std::min<unsigned int>(count, kMostGpus));
  std::array<char, 96> version{};
  if (call(basics.api->driver_version, version.data(), static_cast<unsigned int>(version.size())) ==
      kSuccess) {
    basics.driver_version.assign(version.begin(), std::find(version.begin(), version.end(), '\0'));
  }
  call(basics.api->cuda_version, &basics.cuda_version);
  return basics;
}

void NvmlSource::State::take_inventory(InventoryDone done) {
  asks_.push_back(std::move(done));
  if (taking_) return;
  if (!error_ || loop_.monotonic().ticks_ns() >= next_try_) return start_inventory();
  loop_.post([this, alive = std::weak_ptr<bool>(alive_)] {
    // One that has begun meanwhile answers all.
    if (!alive.expired() && !taking_ && error_) answer_inventory(error_now());
  });
}

void NvmlSource::State::start_inventory() {
  taking_ = true;
  loop_.cancel(retry_);
  retry_ = 0;
  main_.call<Result<Basics>>(
      options_.inventory_deadline_ns,
      [api = api_, up = up_, options = options_] { return ask_basics(api, up, options); },
      [this](std::optional<Result<Basics>> basics) {
        if (!basics) {
          return failed(Error(Code::kUnavailable,
                              "the NVIDIA driver does not answer (not within " +
                                  std::to_string(options_.inventory_deadline_ns / kSecond) +
                                  " s)"));
        }
        if (!basics->ok()) return failed(basics->error());
        got_basics(std::move(*basics).value());
      });
}

void NvmlSource::State::got_basics(Basics basics) {
  if (!up_) ++era_;
  up_ = true;
  api_ = basics.api;
  basics_ = std::move(basics);
  count_ = seen_count_ = basics_.count;
  while (static_cast<int>(gpus_.size()) < count_) {
    gpus_.push_back(std::make_unique<Gpu>(loop_, threads_, static_cast<int>(gpus_.size())));
  }
  facts_missing_ = count_;
  if (count_ == 0) return finish_inventory();
  for (int index = 0; index < count_; ++index) {
    gpus_[static_cast<std::size_t>(index)]->lane.call<Result<GpuFacts>>(
        options_.inventory_deadline_ns, [probe = probe_of(index)] { return probe->facts(); },
        [this, index](std::optional<Result<GpuFacts>> facts) {
          got_facts(index, std::move(facts));
        });
  }
}

// One probe for each thread: a thread that hangs keeps the one it has.
std::shared_ptr<GpuProbe> NvmlSource::State::probe_of(int index) {
  Gpu& gpu = *gpus_[static_cast<std::size_t>(index)];
  int& era = probe_eras_[index];
  if (gpu.probe == nullptr || gpu.probe_generation != gpu.lane.generation() || era != era_) {
    gpu.probe = std::make_shared<GpuProbe>(api_, index);
    gpu.probe_generation = gpu.lane.generation();
    era = era_;
  }
  return gpu.probe;
}

// A GPU that does not answer now is listed as it was known.
void NvmlSource::State::got_facts(int index, std::optional<Result<GpuFacts>> facts) {
  if (facts && facts->ok()) {
    gpus_[static_cast<std::size_t>(index)]->facts = std::move(*facts).value();
  }
  if (--facts_missing_ == 0) finish_inventory();
}

void NvmlSource::State::finish_inventory() {
  taking_ = false;
  model::GpuInventory inventory;
  inventory.driver_version = basics_.driver_version;
  inventory.cuda_major = basics_.cuda_version / 1000;
  inventory.cuda_minor = basics_.cuda_version % 1000 / 10;
  std::vector<const GpuFacts*> known;
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    Gpu& gpu = *gpus_[i];
    gpu.listed = static_cast<int>(i) < count_ && gpu.facts.has_value();
    if (!gpu.listed) continue;
    gpu.presence = presence_of(gpu.facts->gpu);
    known.push_back(&*gpu.facts);
    inventory.gpus.push_back(gpu.facts->gpu);
  }
  join_links(known, inventory);
  const bool mended = error_.has_value();
  error_.reset();
  retry_delay_ = 0;
  if (handler_ && session_count_ != count_) start_events();
  std::weak_ptr<bool> alive = alive_;
  answer_inventory(std::move(inventory));
  if (mended && !alive.expired()) {
    model::GpuEvent event;
    event.kind = model::GpuEvent::Kind::kInventory;
    tell(event);
  }
}

void NvmlSource::State::failed(const Error& error) {
  taking_ = false;
  up_ = false;
  session_count_ = -1;  // events are registered again when it is mended
  error_ = error;
  retry_delay_ = retry_delay_ == 0 ? options_.first_retry_ns
                                   : std::min(retry_delay_ * 2, options_.longest_retry_ns);
  const std::int64_t delay = random_.between(retry_delay_, retry_delay_ * 2);
  next_try_ = loop_.monotonic().ticks_ns() + delay;
  retry_ = loop_.after(delay, [this] {
    retry_ = 0;
    if (!taking_) start_inventory();
  });
  answer_inventory(error_now());
}

Error NvmlSource::State::error_now() const {
  const std::int64_t left = std::max<std::int64_t>(next_try_ - loop_.monotonic().ticks_ns(), 0);
  return {Code::kUnavailable, error_->to_string() + "; the next try is in " +
                                  std::to_string((left + kSecond - 1) / kSecond) + " s"};
}

void NvmlSource::State::answer_inventory(const Result<model::GpuInventory>& result) {
  std::vector<InventoryDone> asks = std::exchange(asks_, {});
  std::weak_ptr<bool> alive = alive_;
  for (const InventoryDone& done : asks) {
    done(result);
    if (alive.expired()) return;
  }
}

// ---- readings ----

void NvmlSource::State::read(ReadingsDone done) {
  reading_asks_.push_back(std::move(done));
  if (reading_) return;
  reading_ = true;
  readings_.clear();
  readings_missing_ = 1;  // held until all are asked
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    if (!gpus_[i]->listed) continue;
    ++readings_missing_;
    const auto index = static_cast<int>(i);
    gpus_[i]->lane.call<model::GpuReading>(
        options_.reading_deadline_ns, [probe = probe_of(index)] { return probe->read(); },
        [this, index](std::optional<model::GpuReading> reading) {
          if (!reading) {
            reading.emplace();
            reading->answer = model::GpuAnswer::kSilent;
            reading->error = "the driver does not answer for this GPU";
          }
          // The UUID of the inventory: a lost GPU does not tell its own.
          reading->uuid = gpus_[static_cast<std::size_t>(index)]->facts->gpu.uuid;
          readings_[index] = std::move(*reading);
          if (--readings_missing_ == 0) finish_reading();
        });
  }
  loop_.post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired() && --readings_missing_ == 0) finish_reading();
  });
}

void NvmlSource::State::finish_reading() {
  reading_ = false;
  std::vector<model::GpuReading> out;
  for (auto& [index, reading] : readings_) out.push_back(std::move(reading));
  readings_.clear();
  std::vector<ReadingsDone> asks = std::exchange(reading_asks_, {});
  std::weak_ptr<bool> alive = alive_;
  for (const ReadingsDone& done : asks) {
    done(out);
    if (alive.expired()) return;
  }
}

}  // namespace berth::nvml
