// The flags of kubectl that choose a cluster, as every command takes them, before its name as well:
// `kubectl berth -n team queue`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edge/kube/config.h"

namespace berth::app {

struct KubectlFlag {
  std::string_view name;  // "--context", "-n"
  bool value = true;      // something follows it
  bool file = false;      // the name of a file
};

std::span<const KubectlFlag> kubectl_flags();

// The command first, then the flags that stood before it, then the rest. Arguments that do not
// begin with such flags stay in their order. "-n=team" becomes "-n team".
std::vector<std::string> command_first(const std::vector<std::string>& arguments);

// Sets what a flag that chooses a cluster says; others are left alone.
void set_kubectl_flag(std::string_view name, const std::string& value, kube::ConfigChoice& choice);

}  // namespace berth::app
