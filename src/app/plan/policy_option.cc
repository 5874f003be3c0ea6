#include "app/plan/policy_option.h"

#include <algorithm>
#include <charconv>

#include "text/escape.h"
#include "text/rfc3339.h"

namespace berth::app {

namespace {

using model::PlacementPolicy;

constexpr const char* kPolicyForms =
    "fragmentation, pack or spread; spread@ or pack@ with queue=NAME, priority-class=NAME or "
    "label:KEY=VALUE; near@KEY=VALUE or near@KEY=VALUE*WEIGHT";

Error policy_error(std::string_view part) {
  return invalid("--policy: found \"" + text::terminal_safe(part) + "\", want a comma list of " +
                 kPolicyForms);
}

bool is_label(const std::string& key, const std::string& value) {
  return text::validate_label_key(key).ok() && text::validate_label_value(value).ok();
}

// "spread@queue=web"; one that stands there already adds nothing.
bool read_class(std::string_view text, PlacementPolicy& out) {
  PlacementPolicy::Class one;
  one.name = text;
  for (const PlacementPolicy::Class& before : out.classes) {
    if (before.name == one.name) return true;
  }
  one.spread = text.starts_with("spread@");
  text.remove_prefix(text.find('@') + 1);
  constexpr std::string_view kLabelPrefix = "label:";
  const bool by_label = text.starts_with(kLabelPrefix);
  if (by_label) text.remove_prefix(kLabelPrefix.size());
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) return false;
  const std::string key(text.substr(0, equals)), value(text.substr(equals + 1));
  if (by_label) {
    if (!is_label(key, value)) return false;
    one.selector = {{key, text::Operator::kIn, {value}}};
  } else if (key == "queue") {
    one.queues = {value};
  } else if (key == "priority-class") {
    one.priority_classes = {value};
  } else {
    return false;
  }
  out.classes.push_back(std::move(one));
  return true;
}

bool read_locality(std::string_view text, PlacementPolicy& out) {
  PlacementPolicy::Locality locality;
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
  if (!is_label(locality.key, locality.value)) return false;
  out.locality.push_back(std::move(locality));
  return true;
}

}  // namespace

Result<PlacementPolicy> parse_policy(std::string_view text) {
  PlacementPolicy policy;
  int packings = 0;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    bool good = true;
    packings += part == "fragmentation" || part == "pack" || part == "spread" ? 1 : 0;
    if (part == "fragmentation") {
      policy.packing = PlacementPolicy::Packing::kFragmentation;
    } else if (part == "pack") {
      policy.packing = PlacementPolicy::Packing::kMostAllocated;
    } else if (part == "spread") {
      policy.packing = PlacementPolicy::Packing::kLeastAllocated;
    } else if (part.starts_with("spread@") || part.starts_with("pack@")) {
      good = read_class(part, policy);
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

Result<model::QueuePolicy> parse_queue_policy(std::string_view text) {
  model::QueuePolicy out;
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
      out.victims = model::QueuePolicy::Victims::kFewestJobs;
    } else if (part == "victims=least-lost") {
      out.victims = model::QueuePolicy::Victims::kLeastLostWork;
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

std::vector<std::string> PolicyArguments::words() const {
  std::vector<std::string> out;
  if (!policy.empty()) out.push_back("--policy=" + policy);
  if (!queue_policy.empty()) out.push_back("--queue-policy=" + queue_policy);
  if (no_preemption) out.emplace_back("--no-preemption");
  return out;
}

Result<model::PolicyFlags> policy_flags(const PolicyArguments& arguments) {
  model::PolicyFlags out;
  if (!arguments.policy.empty()) {
    BERTH_TRY(out.placement, parse_policy(arguments.policy));
  }
  if (!arguments.queue_policy.empty()) {
    BERTH_TRY(out.queues, parse_queue_policy(arguments.queue_policy));
  }
  out.no_preemption = arguments.no_preemption;
  out.words = arguments.words();
  return out;
}

}  // namespace berth::app
