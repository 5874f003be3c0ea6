// How fast the JSON and YAML readers are on a PodList, beside simdjson and Boost.JSON.
//
// simdjson gives neither line numbers nor duplicate keys, so it is a ceiling and not an
// alternative.
#include <benchmark/benchmark.h>
#include <simdjson.h>

#include <boost/json.hpp>
#include <string>

#include "text/json.h"
#include "text/yaml.h"

namespace {

constexpr std::size_t kListBytes = 10'000'000;

std::string one_pod(std::size_t i) {
  const std::string n = std::to_string(i);
  return R"({"metadata":{"name":"train-worker-)" + n +
         R"(","namespace":"team-a","uid":"6f1c2a34-0000-4000-8000-)" + n +
         R"(","resourceVersion":"12345678","creationTimestamp":"2026-01-31T10:00:00Z",)"
         R"("labels":{"app.kubernetes.io/name":"train","job":"resnet","rank":")" +
         n +
         R"("},"annotations":{"note":"first line\nsecond \"quoted\" line"}},)"
         R"("spec":{"nodeName":"node-)" +
         std::to_string(i % 1000) +
         R"(","priority":100,"schedulerName":"berth","containers":[{"name":"main",)"
         R"("image":"team-a/train:v1.2.3","args":["--epochs=90","--batch=256"],)"
         R"("env":[{"name":"NCCL_DEBUG","value":"WARN"},{"name":"RANK","value":")" +
         n +
         R"("}],"resources":{"requests":{"cpu":"8","memory":"64Gi","nvidia.com/gpu":"8"},)"
         R"("limits":{"cpu":"16","memory":"64Gi","nvidia.com/gpu":"8"}}}],)"
         R"("tolerations":[{"key":"nvidia.com/gpu","operator":"Exists","effect":"NoSchedule"}]},)"
         R"("status":{"phase":"Running","podIP":"10.1.2.3","startTime":"2026-01-31T10:00:05Z",)"
         R"("containerStatuses":[{"name":"main","ready":true,"restartCount":0}]}})";
}

const std::string& pod_list() {
  static const std::string list = [] {
    std::string out = R"({"apiVersion":"v1","kind":"PodList","items":[)";
    for (std::size_t i = 0; out.size() < kListBytes; ++i) out += (i > 0 ? "," : "") + one_pod(i);
    return out + "]}";
  }();
  return list;
}

void count_bytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
}

void BM_Berth(benchmark::State& state) {
  for (auto _ : state) {
    auto doc = berth::text::parse_json(pod_list());
    if (!doc.ok()) state.SkipWithError(doc.error().to_string().c_str());
    benchmark::DoNotOptimize(doc);
  }
  count_bytes(state, pod_list().size());
}

void BM_SimdjsonDom(benchmark::State& state) {
  const simdjson::padded_string padded(pod_list());
  simdjson::dom::parser parser;
  for (auto _ : state) {
    simdjson::dom::element root;
    if (parser.parse(padded).get(root) != simdjson::SUCCESS) state.SkipWithError("simdjson");
    benchmark::DoNotOptimize(root);
  }
  count_bytes(state, pod_list().size());
}

void BM_SimdjsonOnDemandNames(benchmark::State& state) {
  const simdjson::padded_string padded(pod_list());
  simdjson::ondemand::parser parser;
  for (auto _ : state) {
    auto doc = parser.iterate(padded);
    std::size_t total = 0;
    for (auto pod : doc["items"].get_array()) {
      std::string_view name;
      if (pod["metadata"]["name"].get(name) == simdjson::SUCCESS) total += name.size();
    }
    benchmark::DoNotOptimize(total);
  }
  count_bytes(state, pod_list().size());
}

void BM_BoostJson(benchmark::State& state) {
  for (auto _ : state) {
    boost::json::monotonic_resource memory;
    auto value = boost::json::parse(pod_list(), &memory);
    benchmark::DoNotOptimize(value);
  }
  count_bytes(state, pod_list().size());
}

void BM_BerthYaml(benchmark::State& state) {
  std::string stream;  // the pods as flow mappings, one document each
  for (std::size_t i = 0; stream.size() < kListBytes / 10; ++i)
    stream += "---\n" + one_pod(i) + "\n";
  for (auto _ : state) {
    const auto status =
        berth::text::read_yaml(stream, [](berth::text::Document) -> berth::Status { return {}; });
    if (!status.ok()) state.SkipWithError(status.error().to_string().c_str());
  }
  count_bytes(state, stream.size());
}

BENCHMARK(BM_Berth)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_SimdjsonDom)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_SimdjsonOnDemandNames)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_BoostJson)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_BerthYaml)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
