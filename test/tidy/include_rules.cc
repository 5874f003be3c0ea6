#include <algorithm>
#include <map>
#include <set>

#include "rules.h"

namespace berth::tidy {
namespace {

using Rooms = std::set<std::string, std::less<>>;
using Table = std::map<std::string, Rooms, std::less<>>;

Rooms joined(Rooms a, const Rooms& b) {
  a.insert(b.begin(), b.end());
  return a;
}

// Which room may include which. A room is a folder below src/, with the folders in it that are not
// rooms of their own.
Table make_direction_table() {
  const Rooms ground = {"base", "text", "model"};
  const Rooms kinds = joined(ground, {"kinds", "kinds/schema"});
  const Rooms decision = {"decide", "decide/admit", "decide/schedule"};
  const Rooms stages = {"node/discover", "node/advertise", "node/partition", "node/allocate",
                        "node/monitor"};
  const Rooms plans = {"plans/react", "plans/account"};
  const Rooms people = {"people/view", "people/why", "people/lint"};
  const Rooms edges = {"edge/kube",    "edge/serve", "edge/store",
                       "edge/kubelet", "edge/nvml",  "edge/host"};
  const Rooms pure =
      joined(joined(joined(kinds, decision), joined(stages, plans)), joined(people, {"rules"}));

  Table table;
  table["base"] = {};
  table["text"] = {"base"};
  table["model"] = {"base", "text"};
  table["kinds"] = ground;
  table["kinds/resolve"] = table["kinds/schema"] = joined(ground, {"kinds"});
  // What an API server refuses: asked by the embedded one, and by who explains.
  table["rules"] = kinds;
  // The decision works on the model alone: it does not know how Kubernetes spells things, so that
  // plan, controller and simulator share it.
  table["decide/admit"] = table["decide/schedule"] = ground;
  table["decide"] = joined(ground, decision);
  // Stages and plans exchange what stands in model/, and do not know each other.
  for (const std::string& room : joined(stages, plans)) table[room] = kinds;
  table["people/view"] = joined(kinds, decision);
  table["people/why"] = joined(table["people/view"], {"people/view", "rules"});
  table["people/lint"] = kinds;
  for (const std::string& room : edges) table[room] = pure;
  // The control plane stands on the client alone, so that it cannot know what serves the API.
  table["control"] = joined(pure, {"edge/kube"});
  // The node's side is where its edges meet.
  table["agent"] = joined(pure, {"edge/kube", "edge/kubelet", "edge/nvml", "edge/host"});
  table["embedded"] = joined(pure, edges);
  table["app"] = joined(table["embedded"], {"embedded", "control", "agent"});
  return table;
}

const Table& direction_table() {
  static const Table table = make_direction_table();
  return table;
}

// Single headers that a room may include against the table.
struct HeaderException {
  std::string_view from;
  std::string_view header;
};
constexpr HeaderException kExceptions[] = {
    // Trial placements: a quota without a place is no admission.
    {"decide/admit", "decide/schedule/placement.h"},
};

// A header that costs seconds to include, and the .cc files that may pay for it.
struct HeavyHeader {
  std::string_view header;
  std::vector<std::string_view> allowed;
  std::string_view instead;
};
const std::vector<HeavyHeader>& heavy_header_table() {
  static const std::vector<HeavyHeader> table = {
      {"boost/beast*", {"src/edge/serve/*.cc"}, "edge/serve/ is the HTTP server"},
      {"boost/asio*", {"src/edge/serve/*.cc"}, "edge/serve/ is the HTTP server"},
      {"grpc*", {"src/edge/kubelet/*.cc"}, "edge/kubelet/ speaks gRPC"},
      {"curl/*", {"src/edge/kube/*.cc"}, "edge/kube/transport.h is the way out"},
      {"openssl/*", {"src/edge/serve/*.cc"}, "edge/serve/certificate.h makes certificates"},
      {"sqlite3.h", {"src/edge/store/*.cc"}, "edge/store/store.h keeps things"},
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
const Rooms kJudgeMayInclude = {"judge", "base", "text", "model"};

bool in_src(const SourceText& source) { return source.path.starts_with("src/"); }

}  // namespace

std::string room_of(std::string_view path) {
  for (std::size_t slash = path.rfind('/'); slash != path.npos; slash = path.rfind('/', slash)) {
    path = path.substr(0, slash);
    if (direction_table().contains(path)) return std::string(path);
  }
  return "";
}

std::string room_of(const SourceText& source) {
  return in_src(source) ? room_of(std::string_view(source.path).substr(4)) : "";
}

Violations known_folder(const SourceText& source) {
  if (!source.is_cpp()) return {};
  const std::string folder = source.folder();
  const bool known =
      in_src(source) ? !room_of(source).empty() : folder == "test" || folder == "bench";
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
  const std::string from = room_of(source);
  const auto row = direction_table().find(from);
  if (row == direction_table().end()) return {};  // known_folder says so
  Violations found;
  for (const Include& include : includes_of(source)) {
    if (!include.quoted) continue;
    if (include.name.find('/') == std::string::npos) {
      found.push_back({source.path, include.line, "direction",
                       "write the path from src/: \"" + from + "/" + include.name + "\""});
      continue;
    }
    const std::string to = room_of(include.name);
    const bool excepted =
        std::any_of(std::begin(kExceptions), std::end(kExceptions),
                    [&](const auto& e) { return e.from == from && e.header == include.name; });
    if (to == from || row->second.contains(to) || excepted) continue;
    found.push_back({source.path, include.line, "direction",
                     from + "/ may not include " + (to.empty() ? include.name : to + "/") +
                         ": move the shared type down into model/, or declare a port here and "
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
