// Runs every scenario below BERTH_SCENARIOS, one test each, and checks the runner itself.
//
//   scenario_test                                   all of them
//   scenario_test --gtest_filter='*gangs*'          those with "gangs" in the path
//   scenario_test --gtest_filter='Embedded.*'       on the embedded cluster
//   BERTH_KUBECONFIG=F scenario_test --gtest_filter='Real.*'   on the cluster of a kubeconfig
//
// Scenario.* is the engine `plan`. Embedded.* and Real.* are those that
// test/scenarios/plan-only.txt does not leave to the plan; Real.* exists only where
// BERTH_KUBECONFIG is set, and without those of test/scenarios/virtual-time.txt.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "cluster_engine.h"
#include "engine.h"

namespace berth::scenario {
namespace {

namespace fs = std::filesystem;

std::string read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

using MakeEngine = std::unique_ptr<Engine> (*)(const Scenario&);

// What a cluster can be asked: who runs where, who waits and for which reason. Certificates, notes
// of the reader, exit codes and what would help are the plan's alone.
std::vector<Expectation> told_by_a_cluster(const std::vector<Expectation>& all) {
  using What = Expectation::Kind;
  constexpr What kOfThePlan[] = {What::kRemoved, What::kOnly, What::kBinding, What::kFits,
                                 What::kFree,    What::kText, What::kExit,    What::kBreaks};
  std::vector<Expectation> out;
  for (Expectation one : all) {
    if (std::find(std::begin(kOfThePlan), std::end(kOfThePlan), one.kind) != std::end(kOfThePlan)) {
      continue;
    }
    if (one.kind == What::kCounts && one.word != "placed" && one.word != "waiting") continue;
    if (one.kind == What::kQueue && (one.word == "available" || one.word == "could")) continue;
    if (one.kind == What::kNotPlaced) one.text.clear();
    out.push_back(std::move(one));
  }
  return out;
}

std::unique_ptr<Engine> make_real(const Scenario& scenario) {
  const char* kubeconfig = std::getenv("BERTH_KUBECONFIG");
  return make_real_engine(scenario, kubeconfig == nullptr ? "" : kubeconfig);
}

// Every failing expectation as one line; an error of the file as one.
std::vector<std::string> run_scenario(const std::string& path, const std::string& text,
                                      MakeEngine make_engine = make_plan_engine) {
  Result<Scenario> scenario = parse_scenario(path, text);
  if (!scenario.ok()) return {scenario.error().to_string()};
  const auto engine = make_engine(*scenario);
  std::vector<std::string> failures;
  for (Step& step : scenario->steps) {
    if (make_engine != make_plan_engine) step.expect = told_by_a_cluster(step.expect);
    const Result<Observed> seen = engine->run(step);
    if (!seen.ok()) {
      failures.push_back(seen.error().to_string());
      return failures;
    }
    std::erase_if(step.expect, [&](const Expectation& one) {
      return one.kind == Expectation::Kind::kQueue && seen->silent_queues.contains(one.name);
    });
    for (std::string& line : check_step(*scenario, step, *seen))
      failures.push_back(std::move(line));
  }
  return failures;
}

class ScenarioFile : public testing::Test {
 public:
  ScenarioFile(std::string shown, fs::path path, MakeEngine engine)
      : shown_(std::move(shown)), path_(std::move(path)), engine_(engine) {}
  void TestBody() override {
    for (const std::string& line : run_scenario(shown_, read_all(path_), engine_)) {
      ADD_FAILURE() << line;
    }
  }

 private:
  std::string shown_;
  fs::path path_;
  MakeEngine engine_;
};

// The first word of each line is a scenario without ".scn", or a beginning that ends in "*".
std::vector<std::string> names_in(const char* list) {
  std::vector<std::string> out;
  std::istringstream lines(read_all(fs::path(BERTH_SCENARIOS) / list));
  for (std::string line; std::getline(lines, line);) {
    const std::string word = line.substr(0, line.find(' '));
    if (!word.empty() && word[0] != '#') out.push_back(word);
  }
  return out;
}

bool listed(const std::string& name, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return word.ends_with('*') ? name.starts_with(word.substr(0, word.size() - 1)) : name == word;
  });
}

std::vector<fs::path> scenario_files() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(BERTH_SCENARIOS)) {
    if (entry.path().extension() == ".scn") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

struct Registered {
  int plan = 0, cluster = 0;
};

Registered register_scenarios() {
  const std::vector<std::string> left_out = names_in("plan-only.txt");
  const std::vector<std::string> virtual_time = names_in("virtual-time.txt");
  const bool real = std::getenv("BERTH_KUBECONFIG") != nullptr;
  Registered count;
  for (const fs::path& path : scenario_files()) {
    const std::string shown =
        "test/scenarios/" + path.lexically_relative(BERTH_SCENARIOS).generic_string();
    std::string name = path.lexically_relative(BERTH_SCENARIOS).generic_string();
    name.resize(name.size() - 4);
    const auto add = [&](const char* suite, MakeEngine engine) {
      testing::RegisterTest(suite, name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [shown, path, engine]() -> ScenarioFile* {
                              return new ScenarioFile(shown, path, engine);
                            });
    };
    add("Scenario", make_plan_engine);
    ++count.plan;
    if (listed(name, left_out)) continue;
    add("Embedded", make_embedded_engine);
    if (real && !listed(name, virtual_time)) add("Real", make_real);
    ++count.cluster;
  }
  return count;
}

const Registered kScenarios = register_scenarios();

TEST(ScenarioRunner, FindsTheScenarios) {
  EXPECT_GE(kScenarios.plan, 400);
  EXPECT_GE(kScenarios.cluster, 500);
}

TEST(ScenarioRunner, TitlesAreUniqueAndThere) {
  std::set<std::string> titles;
  for (const fs::path& path : scenario_files()) {
    const Result<Scenario> scenario = parse_scenario(path.string(), read_all(path));
    if (!scenario.ok()) continue;  // its own test says so
    EXPECT_FALSE(scenario->title.empty())
        << path << ": begin with a comment that says what it shows";
    EXPECT_TRUE(titles.insert(scenario->title).second) << path << ": the title is taken";
  }
}

std::string only_failure(const std::string& text) {
  const std::vector<std::string> failures = run_scenario("x.scn", text);
  return failures.size() == 1 ? failures[0] : "failures: " + std::to_string(failures.size());
}

constexpr const char* kSmall = R"(# A pod on a node.
cluster
  node a: 2 x H100
submit
  pod t/p: 1 GPU
expect
)";

TEST(ScenarioRunner, HoldsWhatHolds) {
  EXPECT_EQ(
      run_scenario("x.scn", std::string(kSmall) + "  t/p on a gpus 0\n  placed 1, waiting 0\n"),
      std::vector<std::string>{});
}

TEST(ScenarioRunner, NamesTheLineOfAFailedExpectation) {
  EXPECT_EQ(only_failure(std::string(kSmall) + "  t/p on a gpus 1\n"),
            "x.scn:7: expected \"t/p on a gpus 1\", found: t/p on a gpus 0");
  EXPECT_EQ(only_failure(std::string(kSmall) + "  placed 2\n"),
            "x.scn:7: expected \"placed 2\", found: placed 1");
}

TEST(ScenarioRunner, NamesTheLineOfABadFile) {
  EXPECT_EQ(
      only_failure("cluster\n  node a: 2 x H100, colour blue\nexpect\n  placed 0\n").substr(0, 29),
      "x.scn:2: found \"colour blue\",");
  EXPECT_EQ(only_failure("nodes\n").substr(0, 8), "x.scn:1:");
  EXPECT_EQ(only_failure("cluster\n  node a: no GPUs\n"),
            "x.scn:1: a step expects nothing: write \"expect\" and what must come out");
  EXPECT_EQ(only_failure("submit\n  pod p: 1 GPU\nexpect\n  placed 0\n"),
            "x.scn:2: found \"p\", want NAMESPACE/NAME");
  EXPECT_EQ(only_failure("submit\n  yaml <<END\n  a: 1\nexpect\n  placed 0\n"),
            "x.scn:2: the block does not end: no line \"END\"");
  EXPECT_EQ(only_failure(std::string(kSmall) + "  t/p waits\n").substr(0, 8), "x.scn:7:");
}

constexpr const char* kQueued = R"(# A workload in a queue.
cluster
  queue a: cohort c, 4 GPUs
  queue b: cohort c, 4 GPUs
running
  workload t/old: 1 pod x 5 GPUs, queue a, admitted
submit
  workload t/fits: 1 pod x 2 GPUs, queue a
  workload t/waits: 1 pod x 2 GPUs, queue b
expect
)";

TEST(ScenarioRunner, HoldsWhatHoldsOfQueues) {
  EXPECT_EQ(
      run_scenario("x.scn", std::string(kQueued) +
                                "  t/waits admitted on default with 1 pods, queue a uses 5 GPUs\n"
                                "  queue a borrows, queue b does not borrow, queue a share 125\n"
                                "  t/fits waits WaitingForQuota \"1 more needed\"\n"
                                "  t/fits position 1, admitted t/waits, evicted nothing\n"),
      std::vector<std::string>{});
}

TEST(ScenarioRunner, NamesWhatQueuesDidInstead) {
  const std::pair<const char*, const char*> lines[] = {
      {"queue a uses 4 GPUs", "5"},
      {"queue b available 4 GPUs", "1"},
      {"queue a could use 9 GPUs", "8"},
      {"queue a share 1", "share 125"},
      {"queue b borrows", "does not borrow"},
      {"queue b inactive", "active"},
      {"queue z active", "no queue z"},
      {"queue a pending 0", "pending 1"},
      {"t/waits admitted on other", "on default"},
      {"t/waits admitted with 2 pods", "with 1 pods"},
      {"t/fits position 2", "position 1"},
      {"t/waits domains n0=1", "domains nothing"},
      {"admitted t/fits", "admitted t/waits"},
      {"evicted t/old", "evicted nothing"},
      {"t/old evicted by t/fits", "neither admitted nor evicted nor waiting"},
  };
  for (const auto& [line, found] : lines) {
    EXPECT_EQ(only_failure(std::string(kQueued) + "  " + line + "\n"),
              "x.scn:11: expected \"" + std::string(line) + "\", found: " + found);
  }
}

TEST(ScenarioRunner, NamesTheLineOfABadQueue) {
  EXPECT_EQ(
      only_failure("cluster\n  queue a: 4 GPUs, colour blue\nexpect\n  placed 0\n").substr(0, 29),
      "x.scn:2: found \"colour blue\",");
  EXPECT_EQ(only_failure("submit\n  workload t: 1 pod\nexpect\n  placed 0\n"),
            "x.scn:2: found \"t\", want NAMESPACE/NAME");
  EXPECT_EQ(only_failure("submit\n  workload t/w: queue a\nexpect\n  placed 0\n"),
            "x.scn:2: want how big it is, such as \"2 pods x 4 GPUs\"");
  EXPECT_EQ(only_failure(std::string(kQueued) + "  queue a shines\n").substr(0, 9), "x.scn:11:");
}

TEST(ScenarioRunner, RemembersWhatQueuesDid) {
  EXPECT_EQ(run_scenario("x.scn", std::string(kQueued) + R"(  admitted t/waits
at +10s
  delete workload t/old
expect
  admitted t/fits
  queue a uses 2 GPUs, queue b uses 2 GPUs
at +20s
  queue b: cohort c, 4 GPUs, drained
expect
  t/waits evicted ClusterQueueStopped
  queue b uses 0 GPUs
at +30s
  workload t/other: 1 pod x 2 GPUs, queue a
expect
  t/other admitted
  queue a uses 4 GPUs
)"),
            std::vector<std::string>{});
}

}  // namespace
}  // namespace berth::scenario
