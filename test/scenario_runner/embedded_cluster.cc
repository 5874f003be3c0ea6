#include <algorithm>

#include "cluster_engine.h"
#include "edge/store/memory_store.h"
#include "embedded/api/api_server.h"
#include "embedded/api/local_transport.h"
#include "text/json.h"
#include "text/rfc3339.h"

namespace berth::scenario {

namespace {

// When the oldest object of the first step was created.
std::int64_t beginning_of(const Scenario& scenario) {
  std::int64_t out = kStart;
  if (scenario.steps.empty()) return out;
  for (const Object& object : scenario.steps.front().apply) {
    const auto document = text::parse_json(object.json);
    const text::Value* meta = document.ok() ? document->root().find("metadata") : nullptr;
    const text::Value* created = meta == nullptr ? nullptr : meta->find("creationTimestamp");
    const auto at = text::parse_rfc3339(created == nullptr ? "" : created->string());
    if (at.ok()) out = std::min(out, *at);
  }
  return out - 60 * kSecond;  // so that those of one age can be made one after the other
}

// A cluster in virtual time; the same in every run.
class EmbeddedEngine final : public Engine, private Pump {
 public:
  explicit EmbeddedEngine(const Scenario& scenario)
      : clock_(beginning_of(scenario)),
        loop_(clock_),
        store_(loop_),
        api_(loop_, store_, Random(1)),
        transport_(loop_, api_),
        client_(transport_, loop_, Random(2)),
        engine_(scenario, client_, loop_, *this) {}

  Result<Observed> run(const Step& step) override {
    if (!started_) {
      started_ = true;
      BERTH_CHECK(api_.start());
      BERTH_CHECK(engine_.start());
    }
    return engine_.run(step);
  }

 private:
  bool until(const std::function<bool()>& done) override {
    return loop_.run_until(done, 60 * kSecond);
  }
  void settle(const std::function<std::uint64_t()>& changes) override {
    constexpr int kMostWindows = 40;
    constexpr std::int64_t kWindow = kSecond * 5 / 2;
    for (int i = 0; i < kMostWindows; ++i) {
      const std::uint64_t before = changes();
      loop_.run_for(kWindow);
      if (changes() == before) return;
    }
  }
  void go_to(std::int64_t wall_ns) override {
    if (wall_ns > clock_.now_ns()) loop_.run_for(wall_ns - clock_.now_ns());
  }

  void creation(std::int64_t wall_ns) override {
    go_to(std::max(wall_ns, created_ + kSecond));
    created_ = clock_.now_ns();
  }
  void created() override {}
  std::int64_t later_by(std::int64_t) override { return 0; }

  std::int64_t created_ = 0;
  FakeClock clock_;
  SteppedLoop loop_;
  store::MemoryStore store_;
  sim::ApiServer api_;
  sim::LocalTransport transport_;
  kube::Client client_;
  ClusterEngine engine_;
  bool started_ = false;
};

}  // namespace

std::unique_ptr<Engine> make_embedded_engine(const Scenario& scenario) {
  return std::make_unique<EmbeddedEngine>(scenario);
}

}  // namespace berth::scenario
