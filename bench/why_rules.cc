// How long berth why takes where the rules of the API server hold a workload back: what the model
// of the cluster does not know, so that objects are read again with every change that is tried.
//
// Nodes of 8 GPUs with 4 + 2 + 1 in use, as objects, in 20 namespaces; in each a Job that is held
// by a cause of its own. The whole column reads all objects again each time, as it is done where
// there are few; the other reads in part (people/why/partial_reading.h). why-rules [NODES [SUBJECTS
// OF EACH CAUSE]]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>

#include "app/why/why_command.h"
#include "stopwatch.h"

namespace {

using namespace berth;
using bench::Clock;
using bench::ms_since;

constexpr int kTeams = 20;

std::string node_json(int number) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Node","metadata":{{"name":"node-{0:05}","labels":)"
      R"({{"topology.kubernetes.io/rack":"r{1}"}}}},"status":{{"allocatable":{{"cpu":"192",)"
      R"("memory":"2000Gi","pods":"110","nvidia.com/gpu":"8"}},)"
      R"("conditions":[{{"type":"Ready","status":"True"}}]}}}})",
      number, number / 16);
}

std::string pod_json(int number, int gpus) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"runs-{0}-{1}","namespace":)"
      R"("team-{2}"}},"spec":{{"nodeName":"node-{0:05}","schedulerName":"berth","containers":)"
      R"([{{"name":"main","resources":{{"limits":{{"nvidia.com/gpu":{1}}},)"
      R"("requests":{{"cpu":"4","memory":"16Gi"}}}}}}]}},"status":{{"phase":"Running"}}}})",
      number, gpus, number % kTeams);
}

std::string job_json(const std::string& name, int team, int gpus, const std::string& job,
                     const std::string& pod) {
  return fmt::format(
      R"({{"apiVersion":"batch/v1","kind":"Job","metadata":{{"name":"{}","namespace":"team-{}"}},)"
      R"("spec":{{{}"template":{{"spec":{{{}"schedulerName":"berth","restartPolicy":"Never",)"
      R"("containers":[{{"name":"main","resources":{{"limits":{{"nvidia.com/gpu":{}}},)"
      R"("requests":{{"cpu":"4","memory":"16Gi"}}}}}}]}}}}}}}})",
      name, team, job, pod, gpus);
}

struct World {
  std::string list;
  std::map<std::string, std::vector<people::Subject>> asked;  // by cause
};

World world_of(int nodes, int each) {
  World out;
  const auto add = [&out](const std::string& object) {
    out.list += (out.list.empty() ? "" : ",") + object;
  };
  for (int n = 0; n < nodes; ++n) {
    add(node_json(n));
    for (const int gpus : {4, 2, 1}) add(pod_json(n, gpus));
  }
  const int used = 7 * nodes / kTeams;
  add(fmt::format(R"({{"apiVersion":"v1","kind":"ResourceQuota","metadata":{{"name":"gold",)"
                  R"("namespace":"team-0"}},"spec":{{"hard":{{"requests.nvidia.com/gpu":"{0}"}}}},)"
                  R"("status":{{"hard":{{"requests.nvidia.com/gpu":"{0}"}},)"
                  R"("used":{{"requests.nvidia.com/gpu":"{0}"}}}}}})",
                  used));
  add(R"({"apiVersion":"v1","kind":"ServiceAccount",)"
      R"("metadata":{"name":"default","namespace":"team-1"}})");
  add(R"({"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"small","namespace":"team-2"},)"
      R"("spec":{"limits":[{"type":"Container","max":{"cpu":"2"}}]}})");
  const struct {
    const char *cause, *job, *pod;
  } causes[] = {{"quota", "", ""},
                {"account", "", R"("serviceAccountName":"nobody",)"},
                {"range", "", ""},
                {"suspended", R"("suspend":true,)", ""},
                {"class", "", R"("priorityClassName":"gone",)"}};
  for (const int gpus : {1, 8}) {
    int team = 0;
    for (const auto& [cause, job, pod] : causes) {
      const std::string kind = gpus == 1 ? cause : fmt::format("{}+room", cause);
      for (int i = 0; i < each; ++i) {
        const std::string name = fmt::format("{}-{}-{:03}", cause, gpus, i);
        add(job_json(name, team, gpus, job, pod));
        out.asked[kind].push_back({"job", fmt::format("team-{}", team), name});
      }
      ++team;
    }
  }
  out.list = R"({"apiVersion":"v1","kind":"List","items":[)" + out.list + "]}";
  return out;
}

struct Row {
  std::vector<double> ms;
  std::string reason;
  std::size_t fixes = 0;
  double at(std::size_t percent) {
    std::sort(ms.begin(), ms.end());
    return ms[ms.size() * percent / 100];
  }
};

Row ask_rules(people::Examiner& examiner, const app::ClusterView& view, bool in_part,
              const std::vector<people::Subject>& subjects) {
  Row out;
  const app::ViewObjects objects(view);
  for (const people::Subject& subject : subjects) {
    app::ReadBudget budget(1);
    people::WhyOptions how = app::why_options(view, objects, budget);
    if (!in_part) how.reread_part = nullptr;
    const auto begin = Clock::now();
    const Result<people::Answer> answer = examiner.why(subject, std::move(how));
    out.ms.push_back(ms_since(begin));
    if (!answer.ok()) continue;
    out.reason = model::name(answer->reason);
    out.fixes = answer->fixes.size();
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const int nodes = argc > 1 ? std::atoi(argv[1]) : 5000;
  const int each = argc > 2 ? std::atoi(argv[2]) : 10;
  const World world = world_of(nodes, each);
  std::istringstream in(world.list);
  std::ostringstream words;
  FakeClock clock(1'767'268'800'000'000'000);
  app::Terminal terminal{.in = in, .out = words, .err = words, .wall = clock, .monotonic = clock};
  app::ViewOptions where;
  where.files = {"-"};
  const auto begin = Clock::now();
  const Result<app::ClusterView> view = app::look(where, terminal);
  if (!view.ok()) return 1;
  const double read_ms = ms_since(begin);
  people::WhyOptions options;
  options.plan.now_ns = view->now_ns;
  people::Examiner examiner(view->inputs, options);
  std::printf("%zu objects, %d GPUs; read in %.0f ms, with the plan %.0f ms\n",
              view->objects.size(), nodes * 8, read_ms, ms_since(begin));
  std::printf("%-14s %9s %9s %9s  %s\n", "cause", "p50 ms", "p99 ms", "whole ms", "reason");
  Row all;
  for (const auto& [cause, subjects] : world.asked) {
    Row part = ask_rules(examiner, *view, true, subjects);
    Row whole = ask_rules(examiner, *view, false, {subjects.front()});
    all.ms.insert(all.ms.end(), part.ms.begin(), part.ms.end());
    std::printf("%-14s %9.1f %9.1f %9.1f  %s, %zu fixes (whole: %zu)\n", cause.c_str(), part.at(50),
                part.at(99), whole.at(50), part.reason.c_str(), part.fixes, whole.fixes);
    if (part.fixes != whole.fixes || part.reason != whole.reason) return 1;
  }
  std::printf("%-14s %9.1f %9.1f\n", "all", all.at(50), all.at(99));
  return 0;
}
