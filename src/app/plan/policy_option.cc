// The text of --policy.
#include <algorithm>
#include <charconv>

#include "app/cli/cli.h"
#include "text/escape.h"
#include "text/rfc3339.h"

namespace berth::app {

namespace {

using schedule::Policy;

constexpr const char* kPolicyForms =
    "fragmentation, pack or spread; spread@ or pack@ with queue=NAME, priority-class=NAME or "
    "label:KEY=VALUE; near@KEY=VALUE or near@KEY=VALUE*WEIGHT";

Error policy_error(std::string_view part) {
  return invalid("--policy: found \"" + text::terminal_safe(part) + "\", want a comma list of " +
                 kPolicyForms);
}

bool read_rule(std::string_view text, bool spread, Policy& out) {
  Policy::Rule rule;
  rule.spread = spread;
  constexpr std::string_view kLabelPrefix = "label:";
  if (text.starts_with(kLabelPrefix)) {
    text.remove_prefix(kLabelPrefix.size());
    rule.by = Policy::Rule::By::kLabel;
    rule.key = text.substr(0, text.find('='));
    if (rule.key.empty()) return false;
  } else if (text.starts_with("queue=")) {
    rule.by = Policy::Rule::By::kQueue;
  } else if (text.starts_with("priority-class=")) {
    rule.by = Policy::Rule::By::kPriorityClass;
  } else {
    return false;
  }
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals + 1 == text.size()) return false;
  rule.value = text.substr(equals + 1);
  out.rules.push_back(std::move(rule));
  return true;
}

bool read_locality(std::string_view text, Policy& out) {
  Policy::Locality locality;
  if (const std::size_t star = text.rfind('*'); star != std::string_view::npos) {
    const std::string_view weight = text.substr(star + 1);
    const auto [end, code] =
        std::from_chars(weight.data(), weight.data() + weight.size(), locality.weight);
    if (code != std::errc() || end != weight.data() + weight.size() || locality.weight < 1 ||
        locality.weight > 1'000'000) {
      return false;
    }
    text = text.substr(0, star);
  }
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  locality.key = text.substr(0, equals);
  locality.value = text.substr(equals + 1);
  out.locality.push_back(std::move(locality));
  return true;
}

}  // namespace

Result<Policy> parse_policy(std::string_view text) {
  Policy policy;
  int packings = 0;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    bool good = true;
    packings += part == "fragmentation" || part == "pack" || part == "spread" ? 1 : 0;
    if (part == "fragmentation") {
      policy.packing = Policy::Packing::kFragmentation;
    } else if (part == "pack") {
      policy.packing = Policy::Packing::kMostAllocated;
    } else if (part == "spread") {
      policy.packing = Policy::Packing::kLeastAllocated;
    } else if (part.starts_with("spread@")) {
      good = read_rule(part.substr(7), true, policy);
    } else if (part.starts_with("pack@")) {
      good = read_rule(part.substr(5), false, policy);
    } else if (part.starts_with("near@")) {
      good = read_locality(part.substr(5), policy);
    } else {
      good = false;
    }
    if (!good) return policy_error(part);
    if (packings > 1) {
      return Error(Code::kInvalid, "--policy: found a second packing, " +
                                       text::terminal_safe(part) +
                                       ", want one of fragmentation, pack and spread");
    }
    if (comma == std::string_view::npos) return policy;
    text.remove_prefix(comma + 1);
  }
}

Result<admit::Policy> parse_queue_policy(std::string_view text) {
  admit::Policy out;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::string_view value = part.substr(std::min(part.find('=') + 1, part.size()));
    if (part == "budgets") {
      out.budgets = true;
    } else if (part == "owners-first") {
      out.owners_first = true;
    } else if (part == "no-ping-pong") {
      out.no_ping_pong = true;
    } else if (part == "victims=fewest") {
      out.victims = admit::Policy::Victims::kFewestJobs;
    } else if (part == "victims=least-lost") {
      out.victims = admit::Policy::Victims::kLeastLostWork;
    } else if (part.starts_with("min-runtime=")) {
      const auto time = text::parse_go_duration(value);
      if (!time.ok() || *time < 0) {
        return invalid("--queue-policy: min-runtime: found \"" + text::terminal_safe(value) +
                       "\", want a time such as 10m");
      }
      out.min_runtime_ns = *time;
    } else if (part.starts_with("max-evictions=")) {
      int count = 0;
      const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), count);
      if (code != std::errc() || end != value.data() + value.size() || count < 1 || count > 64) {
        return invalid("--queue-policy: max-evictions: found \"" + text::terminal_safe(value) +
                       "\", want a number 1..64");
      }
      out.max_evictions_per_hour = count;
    } else {
      return invalid("--queue-policy: found \"" + text::terminal_safe(part) +
                     "\", want a comma list of min-runtime=TIME, budgets, victims=fewest, "
                     "victims=least-lost, owners-first, no-ping-pong and max-evictions=N");
    }
  }
  return out;
}

}  // namespace berth::app
