// FlowSchemas and PriorityLevelConfigurations: their rules, and what kubectl shows of them. They
// are stored for those who bring them; nothing here is queued by them.
#include <algorithm>

#include "kinds/schema/columns.h"
#include "kinds/schema/rules.h"
#include "text/path.h"

namespace berth::sim {

using text::Value;

namespace {

constexpr std::string_view kVerbs[] = {"get",    "list",  "create",           "update", "patch",
                                       "delete", "watch", "deletecollection", "proxy"};

bool has_star(const Value& list) {
  return std::any_of(list.items().begin(), list.items().end(),
                     [](const Value& item) { return item.string() == "*"; });
}

// Some, or "*" and nothing else.
bool check_listed(const Value& rule, std::string_view field, std::string_view none,
                  std::string_view others, Path& path, Causes& out) {
  const Value& list = rule[field];
  if (list.size() == 0) {
    out.add(required_value(path.with(field), none));
    return false;
  }
  if (has_star(list) && list.size() > 1) {
    out.add(invalid_value(path.with(field), list,
                          "if '*' is present, must not specify other " + std::string(others)));
  }
  return !has_star(list);
}

void rules_of_verbs(const Value& rule, Path& path, Causes& out) {
  if (!check_listed(rule, "verbs", "verbs must contain at least one value", "verbs", path, out)) {
    return;
  }
  for (const Value& verb : rule["verbs"].items()) {
    if (std::find(std::begin(kVerbs), std::end(kVerbs), verb.string()) != std::end(kVerbs))
      continue;
    std::vector<std::string> known(std::begin(kVerbs), std::end(kVerbs));
    std::sort(known.begin(), known.end());
    return out.add(not_supported(path.with("verbs"), rule["verbs"], known));
  }
}

void rules_of_subject(const Value& subject, Path& path, Causes& out) {
  constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"Group", "group"}, {"ServiceAccount", "serviceAccount"}, {"User", "user"}};
  const std::string_view kind = text_at(subject, "kind");
  const auto row = std::find_if(std::begin(kKinds), std::end(kKinds),
                                [&](const auto& one) { return one.first == kind; });
  if (row == std::end(kKinds)) {
    return out.add(
        not_supported(path.with("kind"), at(subject, "kind"), {"Group", "ServiceAccount", "User"}));
  }
  for (const auto& [word, field] : kKinds) {
    const Value* who = subject.find(field);
    if (word != kind && who != nullptr) {
      out.add(forbidden_value(path.with(field), std::string(field) +
                                                    " is forbidden when subject kind is not '" +
                                                    std::string(word) + "'"));
    } else if (word == kind && who == nullptr) {
      out.add(required_value(
          path.with(field),
          std::string(field) + " is required when subject kind is '" + std::string(word) + "'"));
    }
  }
}

void rules_of_policy(const Value& rule, Path& path, Causes& out) {
  if (at(rule, "subjects").size() == 0) {
    out.add(required_value(path.with("subjects"), "subjects must contain at least one value"));
  }
  each_item(rule, "subjects", path, [&](const Value& one) { rules_of_subject(one, path, out); });
  if (at(rule, "resourceRules").size() + at(rule, "nonResourceRules").size() == 0) {
    out.add(required_value(
        path.text(), "at least one of resourceRules and nonResourceRules has to be non-empty"));
  }
  each_item(rule, "resourceRules", path, [&](const Value& one) {
    rules_of_verbs(one, path, out);
    check_listed(one, "apiGroups", "resource rules must supply at least one api group",
                 "api groups", path, out);
    check_listed(one, "resources", "resource rules must supply at least one resource", "resources",
                 path, out);
    if (true_at(one, "clusterScope") && at(one, "namespaces").size() == 0) return;
    check_listed(one, "namespaces",
                 "resource rules that are not cluster scoped must supply at least one namespace",
                 "namespaces", path, out);
  });
  each_item(rule, "nonResourceRules", path, [&](const Value& one) {
    rules_of_verbs(one, path, out);
    check_listed(one, "nonResourceURLs", "nonResourceURLs must contain at least one value",
                 "non-resource URLs", path, out);
  });
}

void rules_of_schema(const Value& object, const Value& spec, Path& path, Causes& out) {
  constexpr std::int64_t kMostPrecedence = 10'000;
  const std::string field = path.with("matchingPrecedence");
  const Value& precedence = at(spec, "matchingPrecedence");
  const std::int64_t number = int_at(spec, "matchingPrecedence");
  if (number <= 0) out.add(invalid_value(field, precedence, "must be a positive value"));
  if (number > kMostPrecedence) {
    out.add(invalid_value(field, precedence,
                          "must not be greater than " + std::to_string(kMostPrecedence)));
  }
  if (number == 1 && text_at(object, "metadata.name") != "exempt") {
    out.add(invalid_value(field, precedence,
                          "only the schema named 'exempt' may have matchingPrecedence 1"));
  }
  const std::string_view method = text_at(spec, "distinguisherMethod.type");
  if (!at(spec, "distinguisherMethod").is_null() && method != "ByNamespace" && method != "ByUser") {
    out.add(not_supported(path.with("distinguisherMethod.type"),
                          at(spec, "distinguisherMethod.type"), {"ByNamespace", "ByUser"}));
  }
  const std::string_view level = text_at(spec, "priorityLevelConfiguration.name");
  const std::string wrong = level.empty() ? std::string() : check_dns1123_subdomain(level);
  if (level.empty()) {
    out.add(required_value(path.with("priorityLevelConfiguration.name"),
                           "must reference a priority level"));
  } else if (!wrong.empty()) {
    out.add(invalid_text(path.with("priorityLevelConfiguration.name"), level, wrong));
  }
  each_item(spec, "rules", path, [&](const Value& rule) { rules_of_policy(rule, path, out); });
}

void rules_of_limited(const Value& limited, Path& path, Causes& out) {
  if (at(limited, "nominalConcurrencyShares").is_number() &&
      int_at(limited, "nominalConcurrencyShares") < 0) {
    out.add(invalid_value(path.with("nominalConcurrencyShares"),
                          at(limited, "nominalConcurrencyShares"),
                          "must be a non-negative integer"));
  }
  check_range(limited, "lendablePercent", 0, 100, path, out);
  check_not_negative(limited, "borrowingLimitPercent", path, out);
  const std::string_view type = text_at(limited, "limitResponse.type");
  const bool queuing = !at(limited, "limitResponse.queuing").is_null();
  if (type == "Reject" && queuing) {
    out.add(forbidden_value(path.with("limitResponse.queuing"),
                            "must be nil if limited.limitResponse.type is not Limited"));
  } else if (type == "Queue" && !queuing) {
    out.add(required_value(path.with("limitResponse.queuing"),
                           "must not be empty if limited.limitResponse.type is Limited"));
  } else if (type.empty()) {
    out.add(required_value(path.with("limitResponse.type")));
  } else if (type != "Reject" && type != "Queue") {
    out.add(not_supported(path.with("limitResponse.type"), at(limited, "limitResponse.type"),
                          {"Queue", "Reject"}));
  }
}

void rules_of_level(const Value& object, const Value& spec, Path& path, Causes& out) {
  const std::string_view type = text_at(spec, "type");
  const bool limited = !at(spec, "limited").is_null(), exempt = !at(spec, "exempt").is_null();
  if ((text_at(object, "metadata.name") == "exempt") != (type == "Exempt")) {
    out.add(invalid_text(path.with("type"), type,
                         "must be 'Exempt' if and only if `name` is 'exempt'"));
  }
  if (type == "Exempt" && limited) {
    out.add(forbidden_value(path.with("limited"), "must be nil if the type is not Limited"));
  } else if (type == "Limited") {
    if (exempt) {
      out.add(forbidden_value(path.with("exempt"), "must be nil if the type is Limited"));
    }
    if (!limited) {
      out.add(required_value(path.with("limited"), "must not be empty when type is Limited"));
    }
    at_field(spec, "limited", path, [&](const Value& one) { rules_of_limited(one, path, out); });
  } else if (type.empty()) {
    out.add(required_value(path.with("type")));
  } else if (type != "Exempt") {
    out.add(not_supported(path.with("type"), at(spec, "type"), {"Exempt", "Limited"}));
  }
}

}  // namespace

void rules_of_flow(const Kind& kind, const Value& object, Path& path, Causes& out) {
  const Value& spec = at(object, "spec");
  if (kind.kind == "FlowSchema") return rules_of_schema(object, spec, path, out);
  rules_of_level(object, spec, path, out);
}

void flow_cells(const Kind& kind, const Value& object, const std::string& age,
                text::JsonWriter& out) {
  const Value& spec = at(object, "spec");
  out.value(text_at(object, "metadata.name"));
  if (kind.kind == "FlowSchema") {
    const Value* dangling = find_type(at(object, "status.conditions"), "Dangling");
    out.value(text_at(spec, "priorityLevelConfiguration.name"));
    out.value(int_at(spec, "matchingPrecedence"));
    out.value(or_none(text_at(spec, "distinguisherMethod.type")));
    out.value(age);
    out.value(dangling == nullptr ? std::string_view("?") : text_at(*dangling, "status"));
    return;
  }
  const auto number = [&](const Value& value) {
    if (value.is_number()) {
      out.value(value);
    } else {
      out.value("<none>");
    }
  };
  out.value(text_at(spec, "type"));
  number(at(spec, "limited.nominalConcurrencyShares"));
  for (const char* field : {"queues", "handSize", "queueLengthLimit"}) {
    number(at(spec, "limited.limitResponse.queuing")[field]);
  }
  out.value(age);
}

}  // namespace berth::sim
