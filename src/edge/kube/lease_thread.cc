#include "edge/kube/lease_thread.h"

#include <utility>

namespace berth::kube {

namespace {
constexpr std::int64_t kBeat = 500'000'000;
}  // namespace

struct LeaseThread::Kept {
  std::unique_ptr<Transport> transport;
  std::unique_ptr<Client> client;
  std::unique_ptr<Elector> elector;
};

LeaseThread::LeaseThread(Loop& home, MakeTransport make, Random random, ElectorOptions options,
                         ElectorCalls calls, MetricsRegistry* metrics, std::int64_t still_ns)
    : home_(home),
      loop_(home.monotonic(), home.wall()),
      calls_(std::move(calls)),
      still_ns_(still_ns),
      moved_(home.monotonic().ticks_ns()) {
  beat();
  thread_ = std::thread([this, make = std::move(make), random, options = std::move(options),
                         metrics]() mutable { run(make, random, std::move(options), metrics); });
}

LeaseThread::~LeaseThread() {
  *here_ = false;
  if (beat_timer_ != 0) home_.cancel(beat_timer_);
  loop_.post([this] { loop_.stop(); });  // it may not run yet
  thread_.join();
}

void LeaseThread::beat() {
  moved_ = home_.monotonic().ticks_ns();
  beat_timer_ = home_.after(kBeat, [this] { beat(); });
}

void LeaseThread::at_home(std::function<void()> work) {
  home_.post([here = here_, work = std::move(work)] {
    if (*here) work();
  });
}

void LeaseThread::run(const MakeTransport& make, Random random, ElectorOptions options,
                      MetricsRegistry* metrics) {
  Kept kept;
  kept.transport = make(loop_);
  kept.client = std::make_unique<Client>(*kept.transport, loop_, random.split("client"),
                                         ClientOptions{}, nullptr);
  ElectorCalls calls;
  calls.alive = [this] { return home_.monotonic().ticks_ns() < moved_ + still_ns_; };
  calls.renewed = [this](std::int64_t until) { leads_until_ = until; };
  calls.started = [this] {
    if (calls_.started) at_home(calls_.started);
  };
  calls.stopped = [this](const std::string& why) {
    leads_until_ = INT64_MIN;
    if (calls_.stopped) at_home([this, why] { calls_.stopped(why); });
  };
  calls.observed = [this](const std::string& holder) {
    if (calls_.observed) at_home([this, holder] { calls_.observed(holder); });
  };
  kept.elector = std::make_unique<Elector>(*kept.client, random.split("elector"),
                                           std::move(options), std::move(calls), metrics);
  kept_ = &kept;
  loop_.run();
  kept_ = nullptr;
  kept.elector.reset();
  kept.client.reset();
  kept.transport.reset();
}

void LeaseThread::start() {
  loop_.post([this] {
    if (kept_ != nullptr) kept_->elector->start();
  });
}

void LeaseThread::stop(std::function<void()> done) {
  leads_until_ = INT64_MIN;
  loop_.post([this, done = std::move(done)] {
    if (kept_ == nullptr) return;
    kept_->elector->stop([this, done] {
      leads_until_ = INT64_MIN;
      at_home(done);
    });
  });
}

bool LeaseThread::leading() const { return home_.monotonic().ticks_ns() < leads_until_; }

}  // namespace berth::kube
