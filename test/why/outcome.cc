#include "outcome.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "app/cli/cli.h"
#include "text/json.h"
#include "text/path.h"

namespace berth::why_corpus {

namespace {

using Names = std::set<std::string>;

std::string full_name(const text::Value& object) {
  return std::string(text_at(object, "metadata.namespace")) + '/' +
         std::string(text_at(object, "metadata.name"));
}

bool owned_by(const text::Value& object, const std::string& kind, const std::string& name) {
  const text::Value* metadata = object.find("metadata");
  const text::Value* owners = metadata == nullptr ? nullptr : metadata->find("ownerReferences");
  if (owners == nullptr) return false;
  return std::any_of(owners->items().begin(), owners->items().end(), [&](const text::Value& one) {
    return text_at(one, "kind") == kind && text_at(one, "name") == name;
  });
}

// The group that a pod says it belongs to, or "".
std::string group_of(const text::Value& pod) {
  constexpr std::pair<const char*, const char*> kPlaces[] = {
      {"labels", "scheduling.x-k8s.io/pod-group"},
      {"labels", "kueue.x-k8s.io/pod-group-name"},
      {"annotations", "scheduling.k8s.io/group-name"},
      {"annotations", "scheduling.volcano.sh/group-name"},
      {"annotations", "pod-group-name"}};
  for (const auto& [map, key] : kPlaces) {
    std::string group = std::string(at(pod, "metadata")[map][key].string());
    if (!group.empty()) return group;
  }
  return "";
}

// Every name under which the plan may speak of the subject.
Names names_of(const std::vector<text::Document>& objects, const Subject& subject) {
  Names out = {subject.ns + '/' + subject.name};
  for (const text::Document& document : objects) {
    const text::Value& object = document.root();
    if (text_at(object, "metadata.namespace") != subject.ns) continue;
    const std::string kind(text_at(object, "kind"));
    if (subject.kind == "job" && owned_by(object, "Job", subject.name)) {
      out.insert(full_name(object));
    }
    if (kind != "Pod") continue;
    const std::string group = group_of(object);
    if (group.empty()) continue;
    if (subject.kind == "pod" && text_at(object, "metadata.name") == subject.name) {
      out.insert(subject.ns + '/' + group);
    }
    if (subject.kind == "podgroup" && group == subject.name) out.insert(full_name(object));
  }
  return out;
}

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool mine(const Names& names, const Subject& subject, const std::string& name) {
  if (names.contains(name)) return true;
  const std::string of_job = subject.ns + '/' + subject.name + '-';
  return subject.kind == "job" && name.starts_with(of_job) &&
         all_digits(std::string_view(name).substr(of_job.size()));
}

bool is_true(const text::Value& object, std::string_view type) {
  const text::Value* status = object.find("status");
  const text::Value* conditions = status == nullptr ? nullptr : status->find("conditions");
  if (conditions == nullptr) return false;
  return std::any_of(conditions->items().begin(), conditions->items().end(),
                     [&](const text::Value& one) {
                       return text_at(one, "type") == type && text_at(one, "status") == "True";
                     });
}

bool checks_ready(const text::Value& workload) {
  const text::Value* status = workload.find("status");
  const text::Value* checks = status == nullptr ? nullptr : status->find("admissionChecks");
  if (checks == nullptr) return false;
  return std::all_of(checks->items().begin(), checks->items().end(),
                     [](const text::Value& one) { return text_at(one, "state") == "Ready"; });
}

// By its own objects, for what the plan has nothing to decide about.
bool runs_already(const std::vector<text::Document>& objects, const Names& names) {
  return std::any_of(objects.begin(), objects.end(), [&](const text::Document& document) {
    const text::Value& object = document.root();
    if (!names.contains(full_name(object))) return false;
    const std::string kind(text_at(object, "kind"));
    const std::string phase(text_at(object, "status.phase"));
    if (kind == "Pod") {
      return !text_at(object, "spec.nodeName").empty() && phase != "Pending" && phase != "Failed";
    }
    return kind == "Workload" && (is_true(object, "Admitted") || checks_ready(object));
  });
}

bool is_zero(const text::Value& object, std::string_view key) {
  const text::Value* number = object.find(key);
  return number == nullptr || number->as_int64().value_or(0) == 0;
}

Outcome outcome_in(const text::Value& plan, const Names& names, const Subject& subject,
                   const std::vector<text::Document>& objects) {
  const auto is_mine = [&](const text::Value& one, std::string_view key) {
    return mine(names, subject, std::string(one[key].string()));
  };
  for (const text::Value& one : at(plan, "pending").items()) {
    if (!is_mine(one, "name") && !is_mine(one, "workload")) continue;
    const bool partly = one.find("gang") != nullptr && one.find("gang")->as_bool();
    return {.starts = partly && !is_zero(one, "placed"),
            .reason = std::string(text_at(one, "reason")),
            .retry = std::string(text_at(one, "retry"))};
  }
  for (const text::Value& one : at(plan, "invalid").items()) {
    const std::string object(text_at(one, "object"));
    if (names.contains(object.substr(object.rfind(' ') + 1))) {
      return {.reason = "Misconfigured", .retry = "never"};
    }
  }
  for (const text::Value& one : at(plan, "admitted").items()) {
    if (!is_mine(one, "workload")) continue;
    if (at(one, "checksToCome").items().empty()) return {.starts = true};
    return {.reason = "UnsatisfiedAdmissionChecks", .retry = "wait"};
  }
  for (const text::Value& one : at(plan, "placements").items()) {
    if (is_mine(one, "name") || is_mine(one, "group")) return {.starts = true};
  }
  return {.starts = runs_already(objects, names)};
}

}  // namespace

Ran run_berth(const std::vector<std::string>& arguments, const std::string& standard_input) {
  std::istringstream in(standard_input);
  std::ostringstream out, err;
  FakeClock clock(std::int64_t{1'735'732'800} * 1'000'000'000);
  app::Terminal terminal{.in = in, .out = out, .err = err, .wall = clock, .monotonic = clock};
  Ran ran;
  ran.code = app::run_command(arguments, terminal);
  ran.out = out.str();
  ran.err = err.str();
  return ran;
}

Result<Outcome> plan_of(const Objects& objects, const Subject& subject, const std::string& now) {
  const Ran ran = run_berth({"plan", "-f", "-", "-o", "json", "--now", now}, objects.stream());
  Result<text::Document> plan = text::parse_json(ran.out);
  if (!plan.ok()) return invalid("plan: " + plan.error().to_string() + ' ' + ran.err);
  const std::vector<text::Document> parsed = objects.parsed();
  return outcome_in(plan->root(), names_of(parsed, subject), subject, parsed);
}

}  // namespace berth::why_corpus
