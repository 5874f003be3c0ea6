#include "people/why/endings.h"

#include <gtest/gtest.h>

#include "text/json.h"

namespace berth::people {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kStart = 1000 * kSecond, kNow = 2000 * kSecond;

// Pods and Jobs by name: "Job/team/x" to JSON.
class FewObjects : public ObjectSource {
 public:
  explicit FewObjects(const std::map<std::string, std::string>& json) {
    for (const auto& [name, text] : json) documents_.emplace(name, *text::parse_json(text));
  }
  std::optional<RawObject> find(std::string_view kind, std::string_view ns,
                                std::string_view name) const override {
    const auto it =
        documents_.find(std::string(kind) + '/' + std::string(ns) + '/' + std::string(name));
    if (it == documents_.end()) return std::nullopt;
    return RawObject{"v1", std::string(kind), std::string(ns), std::string(name), "",
                     "",   &it->second.root()};
  }
  std::vector<RawObject> of_kind(std::string_view /*kind*/) const override { return {}; }

 private:
  std::map<std::string, text::Document> documents_;
};

model::PodSpec runs(const std::string& name, const std::string& owner = "", int gpus = 1) {
  model::PodSpec pod;
  pod.ns = "team";
  pod.name = name;
  pod.owner = owner;
  pod.node_name = "n0";
  pod.started_ns = kStart;
  if (gpus > 0) pod.gpu = {.kind = model::GpuDemandSpec::Kind::kWhole, .count = gpus};
  return pod;
}

model::WorkloadSpec admitted(const std::string& name, const std::string& owner, int most_s) {
  model::WorkloadSpec out;
  out.ns = "team";
  out.name = name;
  out.owner = owner;
  out.admission = model::AdmissionSpec{};
  out.admitted = true;
  out.admitted_ns = kStart;
  out.max_execution_s = most_s;
  return out;
}

std::vector<std::string> shown(const Endings& endings) {
  std::vector<std::string> out;
  for (const Ending& each : endings.ends) {
    out.push_back(each.name + (each.workload ? " workload " : " pod ") +
                  std::to_string((each.at_ns - kNow) / kSecond));
  }
  return out;
}

using Names = std::vector<std::string>;

TEST(Endings, ByPodsAndJobsAndTheSimulator) {
  const FewObjects objects(
      {{"Pod/team/a", R"({"spec":{"activeDeadlineSeconds":1500}})"},
       {"Job/team/b", R"({"spec":{"activeDeadlineSeconds":1200}})"},
       {"Pod/team/c",
        R"({"metadata":{"annotations":{"sim.berth.dev/run-seconds":"1100.5"}},"spec":{}})"},
       {"Pod/team/over", R"({"spec":{"activeDeadlineSeconds":10}})"},
       {"Pod/team/odd", R"({"spec":{"activeDeadlineSeconds":-5}})"}});
  kinds::Inputs inputs;
  inputs.pods = {runs("a"),   runs("b-0", "Job/b"), runs("c"),         runs("over"),
                 runs("odd"), runs("silent"),       runs("cpu", "", 0)};
  inputs.pods.push_back(runs("waits"));
  inputs.pods.back().node_name.clear();
  const Endings endings = endings_of(inputs, &objects, kNow);
  EXPECT_EQ(shown(endings),
            (Names{"team/over pod 0", "team/c pod 100", "team/b-0 pod 200", "team/a pod 500"}))
      << "what should have ended ends now";
  EXPECT_EQ(endings.silent, 2) << "odd and silent; a pod without GPUs is nobody's hope";
  EXPECT_TRUE(endings_of(inputs, &objects, kNow, [](const model::PodSpec& p) {
                return p.node_name == "n1";
              }).ends.empty());
  EXPECT_EQ(endings_of(inputs, nullptr, kNow).silent, 6);
}

// Pods of queues end with their workload, whoever asks.
TEST(Endings, ByWorkloads) {
  const FewObjects objects({{"Pod/team/p-0", R"({"spec":{"activeDeadlineSeconds":1300}})"},
                            {"Pod/team/p-1", R"({"spec":{"activeDeadlineSeconds":1400}})"},
                            {"Pod/team/q-0", R"({"spec":{"activeDeadlineSeconds":1400}})"},
                            {"Job/team/j", R"({"spec":{"activeDeadlineSeconds":1600}})"}});
  kinds::Inputs inputs;
  inputs.pods = {runs("m-0", "Job/m"), runs("p-0", "Job/p"), runs("p-1", "Job/p"),
                 runs("q-0", "Job/q"), runs("q-1", "Job/q"), runs("j-0", "Job/j")};
  inputs.queues.workloads = {admitted("m", "Job/m", 1100), admitted("p", "Job/p", 0),
                             admitted("q", "Job/q", 0), admitted("j", "Job/j", 0)};
  const Endings endings = endings_of(inputs, &objects, kNow);
  EXPECT_EQ(shown(endings),
            (Names{"team/m workload 100", "team/p workload 400", "team/j workload 600"}))
      << "by its own limit, by the last of its pods, by its Job";
  EXPECT_EQ(endings.silent, 2) << "one pod of q does not say";
  Draft draft;
  take_out(inputs, {&endings.ends[1], 1}, draft);
  EXPECT_EQ(draft.gone_pods, (std::set<std::string>{"team/p-0", "team/p-1"}));
  EXPECT_EQ(draft.gone_workloads, (std::set<std::string>{"team/p"}));
}

TEST(Endings, TheFirstEndThatSuffices) {
  Endings endings;
  for (int i = 1; i <= 9; ++i) {
    endings.ends.push_back({kNow + i * kSecond, "team/p" + std::to_string(i), false, 0});
  }
  for (std::size_t enough = 1; enough <= 9; ++enough) {
    const Start start = earliest_start(
        endings, [&](std::span<const Ending> ended) { return ended.size() >= enough; });
    EXPECT_EQ(start.at_ns, kNow + static_cast<std::int64_t>(enough) * kSecond);
    EXPECT_EQ(start.because, "when team/p" + std::to_string(enough) + " ends, as it declares");
  }
}

TEST(Endings, HowLongIsToldAsItWasDeclared) {
  const auto because = [](std::int64_t seconds) {
    Endings endings;
    endings.ends.push_back({kNow + kSecond, "team/p", false, seconds * kSecond});
    return earliest_start(endings, [](std::span<const Ending> ended) { return !ended.empty(); })
        .because;
  };
  EXPECT_EQ(because(3600), "when team/p ends (declared 1 h)");
  EXPECT_EQ(because(172'800), "when team/p ends (declared 48 h)");
  EXPECT_EQ(because(5400), "when team/p ends (declared 90 min)");
  EXPECT_EQ(because(61), "when team/p ends (declared 61 s)");
}

TEST(Endings, WithoutATimeThereIsAReason) {
  const auto never = [](std::span<const Ending>) { return false; };
  EXPECT_EQ(earliest_start({}, never).because, "nothing that runs says how long");
  EXPECT_EQ(earliest_start({.ends = {}, .silent = 1}, never).because,
            "1 pod with GPUs does not say how long it runs (activeDeadlineSeconds)");
  EXPECT_EQ(earliest_start({.ends = {{kNow, "team/a", false}}, .silent = 3}, never).because,
            "not when all that say how long they run have ended; 3 pods with GPUs do not say how "
            "long they run (activeDeadlineSeconds)");
  EXPECT_EQ(earliest_start({.ends = {{kNow, "team/a", false}}, .silent = 0}, never).because,
            "not even when everything that runs has ended");
}

}  // namespace
}  // namespace berth::people
