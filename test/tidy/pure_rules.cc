#include <algorithm>

#include "rules.h"

namespace berth::tidy {
namespace {

struct Banned {
  std::vector<std::string_view> words;
  std::string_view instead;
};

constexpr std::string_view kTakeClock = "take a WallClock or MonotonicClock (base/clock.h)";
constexpr std::string_view kTakeRandom = "take a Random split from the run's seed (base/random.h)";
constexpr std::string_view kPort = "declare a port here and implement it at an edge";
constexpr std::string_view kLoop =
    "the loop in app/ owns threads; work on snapshots, or post to it";

// Rooms, with all that is in them, that compute and do nothing else: the same input gives the same
// output, on a laptop, in a cluster and in the simulator.
constexpr std::string_view kPureRooms[] = {"base",   "text", "model", "kinds",
                                           "decide", "node", "plans", "people"};

// The few places whose task it is.
constexpr std::string_view kImpureAllowed[] = {
    "src/base/system_clock.cc",    // the real clocks, for app/
    "src/base/growth_for_test.h",  // how work grows: CPU time of a test
    "src/base/mutex.h",            // what threads share: the queue and the metrics
    "src/base/check.cc",           // prints the last words before abort
    "src/base/private_file.cc",    // for the store, which is an edge, and for logs of control/
};

const std::vector<Banned>& banned_headers() {
  static const std::vector<Banned> table = {
      {{"thread", "future", "stop_token", "semaphore", "latch", "barrier", "pthread.h"}, kLoop},
      {{"mutex", "shared_mutex", "condition_variable"}, "use base/mutex.h, which clang checks"},
      {{"fstream", "filesystem", "fcntl.h", "dirent.h", "unistd.h", "sys/*", "dlfcn.h"}, kPort},
      {{"netinet/*", "arpa/*", "netdb.h", "curl/*", "sqlite3.h", "poll.h"}, kPort},
      {{"random"}, kTakeRandom},
      {{"base/system_clock.h"}, kTakeClock},
  };
  return table;
}

const std::vector<Banned>& banned_words() {
  static const std::vector<Banned> table = {
      {{"system_clock", "steady_clock", "high_resolution_clock", "gettimeofday", "clock_gettime",
        "std::time", "::time(", "time(nullptr", "time(0", "time(NULL", "localtime", "gmtime"},
       kTakeClock},
      {{"getenv", "secure_getenv", "setenv"}, "app/ reads the environment and passes values in"},
      {{"std::thread", "std::jthread", "std::async", "this_thread", "pthread_create",
        "thread_local"},
       kLoop},
      {{"std::filesystem", "ifstream", "ofstream", "fopen", "std::system", "popen", "dlopen"},
       kPort},
      {{"socket(", "recvfrom(", "sendto("}, kPort},
      {{"std::cout", "std::cerr", "std::clog", "printf", "fprintf", "puts", "fputs"},
       "return text, or log through base/log.h; app/ prints"},
  };
  return table;
}

const std::vector<Banned>& banned_everywhere() {
  static const std::vector<Banned> table = {
      {{"rand(", "srand", "drand48", "random_device", "default_random_engine",
        "uniform_int_distribution", "uniform_real_distribution", "normal_distribution",
        "std::shuffle", "random_shuffle"},
       kTakeRandom},
      {{"sleep_for", "sleep_until", "usleep", "nanosleep", "sleep("},
       "wait for the event, or advance a FakeClock (base/clock.h)"},
      {{"strtok", "std::setlocale", "gets("}, "use text/ and string_view"},
  };
  return table;
}

bool is_pure(const SourceText& source) {
  if (!source.is_cpp() || source.is_test() || !source.path.starts_with("src/")) return false;
  std::string folder = source.folder();
  return std::find(std::begin(kPureRooms), std::end(kPureRooms), folder) != std::end(kPureRooms) &&
         std::find(std::begin(kImpureAllowed), std::end(kImpureAllowed), source.path) ==
             std::end(kImpureAllowed);
}

void find_words(const SourceText& source, const std::vector<Banned>& table, std::string_view rule,
                Violations& found) {
  for (std::size_t i = 0; i < source.code.size(); ++i) {
    for (const Banned& banned : table) {
      for (std::string_view word : banned.words) {
        if (find_word(source.code[i], word) == std::string_view::npos) continue;
        found.push_back({source.path, i + 1, std::string(rule),
                         "'" + std::string(word) + "': " + std::string(banned.instead)});
      }
    }
  }
}

void find_headers(const SourceText& source, Violations& found) {
  for (const Include& include : includes_of(source)) {
    for (const Banned& banned : banned_headers()) {
      for (std::string_view header : banned.words) {
        if (!matches(header, include.name)) continue;
        found.push_back({source.path, include.line, "pure-stages",
                         "<" + include.name + ">: " + std::string(banned.instead)});
      }
    }
  }
}

// Of the folders that decide: files whose small numbers are bounded by what a node has, devices,
// shares and thousandths of them, or are scores. Ids and counts of objects are never small.
constexpr std::string_view kSmallNumbers[] = {
    "src/model/snapshot_builder.cc",
    "src/model/cluster_state.cc",
    "src/model/fit.h",
    "src/model/fit.cc",
    "src/model/inventory.cc",
    "src/model/device_choice.cc",
    "src/decide/schedule/scorer.cc",
    "src/decide/schedule/placer.cc",
    "src/decide/schedule/worth.cc",
};

}  // namespace

Violations wide_numbers(const SourceText& source) {
  const std::string folder = source.folder();
  const bool decides = folder == "model" || folder == "decide";
  if (!source.is_cpp() || source.is_test() || !source.path.starts_with("src/") || !decides ||
      std::find(std::begin(kSmallNumbers), std::end(kSmallNumbers), source.path) !=
          std::end(kSmallNumbers)) {
    return {};
  }
  Violations found;
  find_words(source,
             {{{"static_cast<std::uint16_t>", "static_cast<std::int16_t>",
                "static_cast<std::uint8_t>", "static_cast<std::int8_t>"},
               "a stranger can make more of them than fit: use 32 bits or more, or, where a node "
               "bounds it, name the file in test/tidy/pure_rules.cc"}},
             "wide-numbers", found);
  return found;
}

Violations pure_stages(const SourceText& source) {
  if (!is_pure(source)) return {};
  Violations found;
  find_headers(source, found);
  find_words(source, banned_words(), "pure-stages", found);
  find_words(source, {{{"throw"}, "return an Error (base/result.h)"}}, "pure-stages", found);
  return found;
}

// A function that hands on what stands under a key or a path: there is one, in text/.
Violations one_reader(const SourceText& source) {
  // Paths that are made while the program runs: columns and subresources of definitions.
  constexpr std::string_view kOfDefinitions[] = {"src/kinds/schema/body.cc",
                                                 "src/kinds/schema/schema.h"};
  if (!source.is_cpp() || source.folder() == "text" ||
      std::find(std::begin(kOfDefinitions), std::end(kOfDefinitions), source.path) !=
          std::end(kOfDefinitions)) {
    return {};
  }
  constexpr std::string_view kReturns[] = {"const Value*",
                                           "const Value&",
                                           "const text::Value*",
                                           "const text::Value&",
                                           "std::string_view ",
                                           "std::span<const Value>",
                                           "std::span<const text::Value>"};
  constexpr std::string_view kAsked[] = {"view key)", "view keys)", "view path)", "view field)"};
  Violations found;
  for (std::size_t i = 0; i < source.code.size(); ++i) {
    std::string_view line = source.code[i];
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    for (const std::string_view word : {"inline ", "static "}) {
      if (line.starts_with(word)) line.remove_prefix(word.size());
    }
    const auto returns = [&](std::string_view what) { return line.starts_with(what); };
    const auto asks = [&](std::string_view what) { return line.find(what) != line.npos; };
    const bool of_value = asks("Value& ") || asks("Value* ");
    const bool reader =
        std::any_of(std::begin(kReturns), std::end(kReturns), returns) && of_value &&
        (std::any_of(std::begin(kAsked), std::end(kAsked), asks) || asks("initializer_list<"));
    const bool with_body = !line.empty() && (line.back() == '{' || line.back() == ';');
    if (reader && with_body && asks("(const ")) {
      found.push_back({source.path, i + 1, "one-reader", "ask by text/path.h: at(v, \"a.b\")"});
    }
  }
  return found;
}

Violations determinism(const SourceText& source) {
  if (!source.is_cpp()) return {};
  Violations found;
  find_words(source, banned_everywhere(), "determinism", found);
  return found;
}

}  // namespace berth::tidy
