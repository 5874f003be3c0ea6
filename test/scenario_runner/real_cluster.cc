#include "base/run_loop.h"
#include "base/system_clock.h"
#include "cluster_engine.h"
#include "edge/kube/config.h"
#include "edge/kube/curl_transport.h"

namespace berth::scenario {

namespace {

// Any API server, in real time. What the scenario makes is deleted at the end, so that the next one
// finds an empty cluster.
class RealEngine final : public Engine, private Pump {
 public:
  RealEngine(const Scenario& scenario, const kube::Config& config)
      : loop_(monotonic_, wall_),
        transport_(loop_, config),
        client_(transport_, loop_, Random(2)),
        engine_(scenario, client_, loop_, *this) {}
  ~RealEngine() override { engine_.clean_up(); }

  Result<Observed> run(const Step& step) override {
    if (!started_) {
      started_ = true;
      BERTH_CHECK(engine_.start());
    }
    return engine_.run(step);
  }

 private:
  static constexpr std::int64_t kTick = kSecond / 50;

  bool until(const std::function<bool()>& done) override { return wait(done, 60 * kSecond); }

  void settle(const std::function<std::uint64_t()>& changes) override {
    constexpr std::int64_t kQuiet = kSecond * 5 / 2, kLongest = 60 * kSecond;
    std::uint64_t seen = changes();
    std::int64_t since = monotonic_.ticks_ns();
    wait(
        [&] {
          if (changes() != seen) {
            seen = changes();
            since = monotonic_.ticks_ns();
          }
          return monotonic_.ticks_ns() - since > kQuiet;
        },
        kLongest);
  }

  void go_to(std::int64_t) override {}

  // Creation times are whole seconds of the server.
  void creation(std::int64_t) override {
    const std::int64_t due = created_ + kSecond * 11 / 10;
    wait([&] { return monotonic_.ticks_ns() >= due; }, 2 * kSecond);
  }
  void created() override { created_ = monotonic_.ticks_ns(); }

  std::int64_t later_by(std::int64_t wall_ns) override { return wall_.now_ns() - wall_ns; }

  bool wait(const std::function<bool()>& done, std::int64_t at_most_ns) {
    const std::int64_t end = monotonic_.ticks_ns() + at_most_ns;
    bool held = false;
    const std::function<void()> look = [&] {
      held = done();
      if (held || monotonic_.ticks_ns() > end) return loop_.stop();
      tick_ = loop_.after(kTick, look);
    };
    tick_ = loop_.after(0, look);
    loop_.run();
    loop_.cancel(tick_);
    return held;
  }

  SystemMonotonicClock monotonic_;
  SystemWallClock wall_;
  RunLoop loop_;
  kube::CurlTransport transport_;
  kube::Client client_;
  ClusterEngine engine_;
  Loop::Timer tick_ = 0;
  std::int64_t created_ = -2 * kSecond;
  bool started_ = false;
};

class FailedEngine final : public Engine {
 public:
  explicit FailedEngine(Error error) : error_(std::move(error)) {}
  Result<Observed> run(const Step&) override { return error_; }

 private:
  Error error_;
};

}  // namespace

std::unique_ptr<Engine> make_real_engine(const Scenario& scenario, const std::string& kubeconfig) {
  const Result<kube::Config> config = kube::kubeconfig({kubeconfig});
  if (!config.ok()) return std::make_unique<FailedEngine>(config.error());
  return std::make_unique<RealEngine>(scenario, *config);
}

}  // namespace berth::scenario
