// What a shell may put where the cursor is: commands, options, their values, and names from the
// cluster.
//
// One answer for all shells and for kubectl: `berth __complete WORD...` (or the same program under
// the name kubectl_complete-berth) prints candidates, one a line, perhaps a tab and a help text
// behind them, and then ":4" (that is all) or ":0" (names of files as well), which is what kubectl
// wants of its plugins. Behind --option= the values alone: shells know what stands before them. The
// scripts of `berth completion` ask it. Candidates come from the cluster within kCompletionNs or
// not at all; those that a shell could act on are left out.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/cli.h"
#include "base/result.h"
#include "edge/kube/config.h"

namespace berth::app {

inline constexpr const char* kCompleteCommand = "__complete";
inline constexpr std::int64_t kCompletionNs = 2'000'000'000;

// What a shell may complete.
struct CompletionCommand {
  std::string name, help;  // help: the first line
  struct Option {
    std::string shown, help;  // "--watch", "-n"
    bool value = false;       // something follows it
    std::vector<std::string> values;
    bool file = false;  // takes the name of a file
  };
  std::vector<Option> options;
};

struct Completion {
  std::vector<std::pair<std::string, std::string>> candidates;  // with help
  bool files = false;
};

// Where names come from. what: "pods", "jobs", "workloads", "podgroups", those of what makes pods
// (people/why/unit.h), "localqueues", "clusterqueues", "namespaces", "priorityclasses", or
// "contexts", "clusters", "users" of the kubeconfig. ns: empty for the context's.
struct CompletionAsk {
  std::string what, ns;
  kube::ConfigChoice cluster;
};
using CompletionNames = std::function<std::vector<std::string>(const CompletionAsk&)>;

// words: what is typed behind the program's name; the last one is not finished.
Completion complete(const std::vector<std::string>& words,
                    const std::vector<CompletionCommand>& commands, const CompletionNames& names);

std::string completion_lines(const Completion& completion);

// Asks the cluster of the words.
CompletionNames names_of_cluster(Terminal& terminal);

// A script for bash, zsh or fish. Nothing in it comes from outside.
Result<std::string> completion_script(const std::string& shell);

}  // namespace berth::app
