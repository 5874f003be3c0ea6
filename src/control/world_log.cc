#include "control/world_log.h"

#include <array>

#include "kinds/kept.h"
#include "text/path.h"

namespace berth::control {

using text::JsonWriter;
using text::Value;

namespace {

using Packing = schedule::Policy::Packing;
using By = schedule::Policy::Rule::By;
using Victims = admit::Policy::Victims;

std::string object_key(std::string_view version, std::string_view kind, std::string_view ns,
                       std::string_view name) {
  std::string out(version);
  for (const std::string_view part : {kind, ns, name}) out.append("|").append(part);
  return out;
}

Result<std::int64_t> number_in(const Value& v, std::string_view key, std::int64_t most) {
  const Value* found = v.find(key);
  const auto number = found == nullptr ? std::nullopt : found->as_int64();
  if (!number || *number < 0 || *number > most) {
    return invalid(std::string(key) + ": want a number from 0 to " + std::to_string(most));
  }
  return *number;
}

}  // namespace

void write_policies(JsonWriter& out, const schedule::Policy& policy,
                    const admit::Policy& queue_policy) {
  out.object("policy", [&] {
    out.field("packing", static_cast<std::int64_t>(policy.packing));
    out.field("preemption", policy.preemption);
    out.array("rules", [&] {
      for (const auto& rule : policy.rules) {
        out.object([&] {
          out.field("by", static_cast<std::int64_t>(rule.by));
          out.field("key", rule.key);
          out.field("value", rule.value);
          out.field("spread", rule.spread);
        });
      }
    });
    out.array("locality", [&] {
      for (const auto& one : policy.locality) {
        out.object([&] {
          out.field("key", one.key);
          out.field("value", one.value);
          out.field("weight", one.weight);
        });
      }
    });
  });
  out.object("queuePolicy", [&] {
    out.field("preemption", queue_policy.preemption);
    out.field("minRuntimeNs", queue_policy.min_runtime_ns);
    out.field("budgets", queue_policy.budgets);
    out.field("ownersFirst", queue_policy.owners_first);
    out.field("noPingPong", queue_policy.no_ping_pong);
    out.field("maxEvictionsPerHour", queue_policy.max_evictions_per_hour);
    out.field("victims", static_cast<std::int64_t>(queue_policy.victims));
  });
}

Result<std::pair<schedule::Policy, admit::Policy>> read_policies(const Value& line) {
  const Value* p = line.find("policy");
  const Value* q = line.find("queuePolicy");
  if (p == nullptr || q == nullptr) return invalid("want policy and queuePolicy");
  schedule::Policy policy;
  BERTH_TRY(const std::int64_t packing,
            number_in(*p, "packing", static_cast<int>(Packing::kLeastAllocated)));
  policy.packing = static_cast<Packing>(packing);
  policy.preemption = true_at(*p, "preemption");
  if (const Value* rules = p->find("rules")) {
    for (const Value& rule : rules->items()) {
      BERTH_TRY(const std::int64_t by, number_in(rule, "by", static_cast<int>(By::kLabel)));
      policy.rules.push_back({static_cast<By>(by), std::string(text_at(rule, "key")),
                              std::string(text_at(rule, "value")), true_at(rule, "spread")});
    }
  }
  if (const Value* list = p->find("locality")) {
    for (const Value& one : list->items()) {
      const Value* weight = one.find("weight");
      policy.locality.push_back(
          {std::string(text_at(one, "key")), std::string(text_at(one, "value")),
           static_cast<int>(weight == nullptr ? 1 : weight->as_int64().value_or(1))});
    }
  }
  admit::Policy queue_policy;
  queue_policy.preemption = true_at(*q, "preemption");
  BERTH_TRY(queue_policy.min_runtime_ns, number_in(*q, "minRuntimeNs", INT64_MAX));
  queue_policy.budgets = true_at(*q, "budgets");
  queue_policy.owners_first = true_at(*q, "ownersFirst");
  queue_policy.no_ping_pong = true_at(*q, "noPingPong");
  BERTH_TRY(const std::int64_t most, number_in(*q, "maxEvictionsPerHour", INT32_MAX));
  queue_policy.max_evictions_per_hour = static_cast<int>(most);
  BERTH_TRY(const std::int64_t victims,
            number_in(*q, "victims", static_cast<int>(Victims::kLeastLostWork)));
  queue_policy.victims = static_cast<Victims>(victims);
  return std::pair(policy, queue_policy);
}

void WorldLog::begin(const std::vector<std::string>& scheduler_names,
                     const schedule::Policy& policy, const admit::Policy& queue_policy) {
  JsonWriter out;
  out.object([&] {
    out.field("op", "begin");
    out.field("format", kWorldLogFormat);
    out.list("schedulerNames", scheduler_names);
    write_policies(out, policy, queue_policy);
  });
  start_file(std::move(out).take());
}

void WorldLog::put(std::string_view version, std::string_view kind, const Value& object) {
  JsonWriter out;
  out.object([&] {
    out.field("op", "put");
    out.field("v", version);
    out.field("k", kind);
    out.key("o");
    kinds::write_kept(out, object, {.arguments = false, .node_images = false});
  });
  const Value* meta = object.find("metadata");
  const Value none;
  const Value& m = meta == nullptr ? none : *meta;
  write_object(object_key(version, kind, text_at(m, "namespace"), text_at(m, "name")),
               std::move(out).take(), true);
}

void WorldLog::remove(std::string_view version, std::string_view kind, std::string_view ns,
                      std::string_view name) {
  JsonWriter out;
  out.object([&] {
    out.field("op", "remove");
    out.field("v", version);
    out.field("k", kind);
    out.field("ns", ns);
    out.field("name", name);
  });
  write_object(object_key(version, kind, ns, name), std::move(out).take(), false);
}

void WorldLog::note(std::string_view op, std::initializer_list<Field> fields) {
  JsonWriter out;
  out.object([&] {
    out.field("op", op);
    for (const auto& [key, word] : fields) {
      std::visit([&, name = key](const auto& value) { out.field(name, value); }, word);
    }
  });
  write(std::move(out).take());
}

void WorldLog::note_names(std::string_view op, const std::set<std::string>& names) {
  JsonWriter out;
  out.object([&] {
    out.field("op", op);
    out.list("names", names);
  });
  write(std::move(out).take());
}

}  // namespace berth::control
