#include <algorithm>
#include <map>
#include <set>

#include "rules.h"

namespace berth::tidy {
namespace {

using Folders = std::set<std::string, std::less<>>;

const Folders kStages = {"discover", "advertise", "admit",   "schedule", "decide",  "allocate",
                         "monitor",  "react",     "account", "explain",  "operate", "lint"};
const Folders kEdges = {"kube", "kubelet", "nvml", "host", "store", "serve"};

// What is below the stages. The decision (admit, schedule, decide) works on the model alone: it
// must not know how Kubernetes spells things, so that plan, controller and simulator share it. The
// explanation names fields of manifests, and so knows objects/ too.
const Folders kBelowDecision = {"base", "text", "model"};
const Folders kBelowStages = {"base", "text", "model", "objects"};

Folders joined(Folders a, const Folders& b) {
  a.insert(b.begin(), b.end());
  return a;
}

std::map<std::string, Folders, std::less<>> make_direction_table() {
  std::map<std::string, Folders, std::less<>> table;
  table["base"] = {};
  table["text"] = {"base"};
  table["model"] = {"base", "text"};
  table["objects"] = {"base", "text", "model"};
  for (const auto& stage : kStages) table[stage] = kBelowStages;
  table["admit"] = table["schedule"] = kBelowDecision;
  table["decide"] = joined(kBelowDecision, {"admit", "schedule"});
  table["explain"] = joined(kBelowStages, {"decide", "admit", "schedule"});
  Folders below_edges = joined(kBelowStages, kStages);
  for (const auto& edge : kEdges) table[edge] = below_edges;
  // The control plane stands on the client alone, so that it cannot know what serves the API.
  table["control"] = joined(below_edges, {"kube"});
  // The node's side is where its edges meet.
  table["agent"] = joined(below_edges, {"kube", "kubelet", "nvml", "host"});
  table["sim"] = joined(below_edges, kEdges);
  table["app"] = joined(table["sim"], {"sim", "control", "agent"});
  return table;
}

const auto& direction_table() {
  static const auto table = make_direction_table();
  return table;
}

// Single headers that a folder may include against the table.
struct HeaderException {
  std::string_view from;
  std::string_view header;
};
constexpr HeaderException kExceptions[] = {
    {"admit", "schedule/placement.h"},  // trial placements: a quota without a place is no admission
};

// A header that costs seconds to include, and the .cc files that may pay for it.
struct HeavyHeader {
  std::string_view header;
  std::vector<std::string_view> allowed;
  std::string_view instead;
};
const std::vector<HeavyHeader>& heavy_header_table() {
  static const std::vector<HeavyHeader> table = {
      {"boost/beast*", {"src/serve/*.cc"}, "serve/ is the HTTP server"},
      {"boost/asio*", {"src/serve/*.cc"}, "serve/ is the HTTP server"},
      {"grpc*", {"src/kubelet/*.cc"}, "kubelet/ speaks gRPC"},
      {"curl/*", {"src/kube/*.cc"}, "kube/transport.h is the way out"},
      {"openssl/*", {"src/serve/*.cc"}, "serve/certificate.h makes certificates"},
      {"sqlite3.h", {"src/store/*.cc"}, "store/store.h keeps things"},
      {"CLI/*", {"src/app/*.cc"}, "app/ reads the command line"},
      {"simdjson*", {"src/text/*.cc", "bench/*.cc"}, "text/json.h reads JSON"},
      {"yaml.h", {"src/text/*.cc"}, "text/yaml.h reads YAML"},
      {"nlohmann/*", {}, "text/json.h reads JSON and text/json_writer.h writes it"},
      {"spdlog/*", {}, "base/log.h writes log lines"},
      {"rapidcheck*", {"*_test.cc", "test/*.cc"}, "property tests stand in *_test.cc"},
      {"gtest/*",
       {"*_test.cc", "*_for_test.h", "test/*.cc", "test/*.h"},
       "tests stand in *_test.cc"},
      {"gmock/*",
       {"*_test.cc", "*_for_test.h", "test/*.cc", "test/*.h"},
       "tests stand in *_test.cc"},
      {"benchmark/*", {"bench/*.cc", "bench/*.h"}, "benchmarks stand in bench/"},
      {"iostream", {"src/app/*.cc", "*_test.cc", "test/*.cc", "bench/*.cc"}, "app/ prints"},
  };
  return table;
}

// The judge checks decisions from first principles; one that includes the code it judges would
// repeat its mistakes.
const Folders kJudgeMayInclude = {"judge", "base", "text", "model"};

bool in_src(const SourceText& source) { return source.path.starts_with("src/"); }

}  // namespace

Violations known_folder(const SourceText& source) {
  if (!source.is_cpp()) return {};
  std::string folder = source.folder();
  bool known =
      in_src(source) ? direction_table().contains(folder) : folder == "test" || folder == "bench";
  if (known) return {};
  return {{source.path, 1, "known-folder",
           "put it into a folder of src/README.md, or add the folder to the table in "
           "test/tidy/include_rules.cc and say there what it may include"}};
}

Violations judge_independence(const SourceText& source) {
  if (!source.path.starts_with("test/judge/")) return {};
  Violations found;
  for (const Include& include : includes_of(source)) {
    std::string to = include.name.substr(0, include.name.find('/'));
    if (!include.quoted || to == include.name || kJudgeMayInclude.contains(to)) continue;
    if (source.path.ends_with("_test.cc")) continue;  // compares the two
    found.push_back({source.path, include.line, "judge-independence",
                     "the judge may not include " + to + "/: work it out again from model/ types"});
  }
  return found;
}

Violations direction(const SourceText& source) {
  if (!source.is_cpp() || !in_src(source)) return {};
  auto row = direction_table().find(source.folder());
  if (row == direction_table().end()) return {};  // known_folder says so
  Violations found;
  for (const Include& include : includes_of(source)) {
    std::string to = include.name.substr(0, include.name.find('/'));
    if (!include.quoted) continue;
    if (include.name.find('/') == std::string::npos) {
      found.push_back({source.path, include.line, "direction",
                       "write the path from src/: \"" + row->first + "/" + include.name + "\""});
      continue;
    }
    bool excepted = std::any_of(std::begin(kExceptions), std::end(kExceptions), [&](const auto& e) {
      return e.from == row->first && e.header == include.name;
    });
    if (to == row->first || row->second.contains(to) || excepted) continue;
    found.push_back({source.path, include.line, "direction",
                     row->first + "/ may not include " + to +
                         "/: move the shared type down into model/, or declare a port here and "
                         "implement it there (see src/README.md)"});
  }
  return found;
}

Violations heavy_headers(const SourceText& source) {
  Violations found;
  for (const Include& include : includes_of(source)) {
    for (const HeavyHeader& heavy : heavy_header_table()) {
      if (!matches(heavy.header, include.name)) continue;
      bool allowed = std::any_of(heavy.allowed.begin(), heavy.allowed.end(),
                                 [&](auto pattern) { return matches(pattern, source.path); });
      if (allowed) continue;
      found.push_back({source.path, include.line, "heavy-header",
                       "<" + include.name + "> may not be included here: " +
                           std::string(heavy.instead) + " (test/tidy/include_rules.cc)"});
    }
  }
  return found;
}

}  // namespace berth::tidy
