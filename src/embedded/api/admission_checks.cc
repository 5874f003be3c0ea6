// What a write has to keep once it is what would be stored: the LimitRanges of its namespace, the
// Pod Security Standard that it enforces, overhead that is its RuntimeClass's, and, last of all,
// its ResourceQuotas. The words are those of rules/.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "embedded/api/server.h"
#include "rules/limit_range.h"
#include "rules/pod_classes.h"
#include "rules/pod_security.h"
#include "text/path.h"

namespace berth::sim::api {

namespace {

constexpr std::size_t kMostWarnedPods = 3'000;  // as many as kube-apiserver looks at

MaybeError refused(const Draft& draft, const std::string& words) {
  if (words.empty()) return std::nullopt;
  return forbidden(draft.type->resource(), draft.name, words);
}

// ---- LimitRange --------------------------------------------------------------------------------

MaybeError check_ranges(const Server& server, const Draft& draft) {
  const bool pod = draft.type->role == Role::kPod;
  if (pod ? !draft.create() && draft.subresource != "resize" : !draft.subresource.empty()) {
    return std::nullopt;
  }
  if (draft.live && draft.live->terminating) return std::nullopt;
  for (const ObjectPtr& each : server.in_namespace_of("limitranges", draft.ns)) {
    text::Editor read;
    const auto parsed = read.parse(each->json);
    if (!parsed.ok()) continue;
    const auto range = rules::read_range(parsed.value());
    const auto breaches = pod ? rules::breaches_of(range, draft.object["spec"])
                              : rules::claim_breaches(range, draft.object);
    if (auto error = refused(draft, rules::words_of(breaches))) return error;
  }
  return std::nullopt;
}

// ---- Pod Security ------------------------------------------------------------------------------

// Labels as a value, of an object that is not parsed.
Value labels_of(text::Editor& edit, const Object& object) {
  std::vector<Member> members;
  for (const auto& [key, value] : object.labels) members.push_back({key, edit.string(value)});
  return edit.object(members);
}

// Only what a pod runs can be changed, and only that is looked at again.
bool same_images(const Value& a, const Value& b) {
  for (const char* list : {"containers", "initContainers", "ephemeralContainers"}) {
    if (a[list].size() != b[list].size()) return false;
    for (std::size_t i = 0; i < a[list].size(); ++i) {
      const Value &one = a[list].items()[i], &two = b[list].items()[i];
      if (text_at(one, "image") != text_at(two, "image")) return false;
    }
  }
  return true;
}

// The template of pods that objects of the resource hold; null: it holds none.
const Value* template_in(const Draft& draft) {
  const std::string resource = draft.type->kind->group_resource();
  if (resource == "podtemplates") return find(draft.object, "template");
  if (resource == "cronjobs.batch") return find(draft.object, "spec.jobTemplate.spec.template");
  for (const std::string_view holder :
       {"replicationcontrollers", "replicasets.apps", "deployments.apps", "statefulsets.apps",
        "daemonsets.apps", "jobs.batch"}) {
    if (resource == holder) return find(draft.object, "spec.template");
  }
  return nullptr;
}

MaybeError check_security(const Server& server, const Draft& draft) {
  const bool pod = draft.type->role == Role::kPod;
  const std::string& sub = draft.subresource;
  if (!sub.empty() && !(pod && (sub == "ephemeralcontainers" || sub == "resize"))) {
    return std::nullopt;
  }
  const Value* found = pod ? &draft.object : template_in(draft);
  const TypePtr namespaces = server.registry.find("", "v1", "namespaces");
  const ObjectPtr home = namespaces ? namespaces->shelf->latest(draft.ns) : nullptr;
  if (found == nullptr || !home) return std::nullopt;
  text::Editor edit;
  const rules::SecurityPolicy policy = rules::policy_of(labels_of(edit, *home));
  const Value& notes = at(*found, "metadata.annotations");
  const Value& spec = (*found)["spec"];
  if (pod && !draft.create() && same_images(draft.live_value["spec"], spec)) return std::nullopt;
  if (pod) {
    if (const auto words = rules::violates(policy.enforce, notes, spec)) {
      return refused(draft, *words);
    }
  }
  const std::vector<rules::Offence> against = rules::offences(policy.warn, notes, spec);
  if (!against.empty()) {
    draft.request->warn("would violate PodSecurity " + quoted(rules::name_of(policy.warn)) + ": " +
                        rules::words_of(against));
  }
  return std::nullopt;
}

// The pods that are there already, one of each that one controller made: nobody refuses them.
void warn_of_pods(const Server& server, const Draft& draft, const rules::Standard& standard) {
  std::map<std::string, std::vector<std::string>> by_words;  // the pods, by name
  std::set<std::string> controllers;
  std::size_t looked = 0, all = 0;
  for (const ObjectPtr& pod : server.in_namespace_of("pods", draft.name)) {
    const auto owner = std::find_if(pod->owners.begin(), pod->owners.end(),
                                    [](const Owner& one) { return one.controller; });
    if (owner != pod->owners.end() && !controllers.insert(owner->uid).second) continue;
    if (++all > kMostWarnedPods) continue;
    ++looked;
    text::Editor read;
    const auto parsed = read.parse(pod->json);
    if (!parsed.ok()) continue;
    const auto against = rules::offences(standard, at(parsed.value(), "metadata.annotations"),
                                         parsed.value()["spec"]);
    if (!against.empty()) by_words[rules::reasons_of(against)].push_back(pod->name);
  }
  Request& request = *draft.request;
  if (looked < all) {
    request.warn("new PodSecurity enforce level only checked against the first " +
                 std::to_string(looked) + " of " + std::to_string(all) + " existing pods");
  }
  if (by_words.empty()) return;
  request.warn("existing pods in namespace " + quoted(draft.name) +
               " violate the new PodSecurity enforce level " + quoted(rules::name_of(standard)));
  std::vector<std::string> lines;
  for (const auto& [words, names] : by_words) {
    std::string line = names.front();
    const std::size_t others = names.size() - 1;
    if (others > 0) {
      line += " (and " + std::to_string(others) + " other pod" + (others > 1 ? "s)" : ")");
    }
    lines.push_back(line + ": " + words);
  }
  std::sort(lines.begin(), lines.end());
  for (std::string& line : lines) request.warn(std::move(line));
}

MaybeError check_namespace(const Server& server, const Draft& draft) {
  if (!draft.subresource.empty()) return std::nullopt;
  std::vector<rules::WrongLabel> wrong, wrong_before;
  const auto now = rules::policy_of(at(draft.object, "metadata.labels"), &wrong);
  const auto before = rules::policy_of(at(draft.live_value, "metadata.labels"), &wrong_before);
  const auto same = [](const rules::WrongLabel& a, const rules::WrongLabel& b) {
    return a.label == b.label && a.value == b.value;
  };
  const bool known = !draft.create() && std::equal(wrong.begin(), wrong.end(), wrong_before.begin(),
                                                   wrong_before.end(), same);
  if (!wrong.empty() && !known) {
    std::vector<Cause> causes;
    for (const rules::WrongLabel& each : wrong) {
      causes.push_back(
          invalid_value("metadata.labels[" + each.label + "]", quoted(each.value), each.words));
    }
    return invalid_object("", "Namespace", draft.name, std::move(causes));
  }
  if (draft.create() || now.enforce == before.enforce) return std::nullopt;
  const bool laxer =
      now.enforce.minor == before.enforce.minor && now.enforce.level <= before.enforce.level;
  if (now.enforce.level == rules::Standard::Level::kPrivileged || laxer) return std::nullopt;
  warn_of_pods(server, draft, now.enforce);
  return std::nullopt;
}

// ---- RuntimeClass
// --------------------------------------------------------------------------------

MaybeError check_overhead(const Server& server, const Draft& draft) {
  if (!draft.create()) return std::nullopt;
  const Value& spec = draft.object["spec"];
  const std::string_view name = text_at(spec, "runtimeClassName");
  if (name.empty() && spec.find("overhead") == nullptr) return std::nullopt;
  const Shelf* classes = server.storage.find_shelf("runtimeclasses.node.k8s.io");
  const ObjectPtr found = name.empty() || classes == nullptr ? nullptr : classes->latest(name);
  text::Editor read;
  if (!found) return refused(draft, rules::wrong_overhead(Value(), spec));
  const auto parsed = read.parse(found->json);
  if (!parsed.ok()) return std::nullopt;
  return refused(draft, rules::wrong_overhead(parsed.value(), spec));
}

// Whether a write of that form can change what its quotas count.
bool charges(const Draft& draft) {
  if (draft.create()) return true;
  const std::string& sub = draft.subresource;
  switch (draft.type->role) {
    case Role::kPod: {
      if (sub == "resize") return true;
      const auto ends = [](const Value& pod) {
        return int_at(pod, "spec.activeDeadlineSeconds", -1) >= 0;
      };
      return sub.empty() && ends(draft.object) != ends(draft.live_value);  // another scope
    }
    case Role::kClaim:
      return sub.empty() || sub == "status";
    case Role::kService:
      return sub.empty();
    default:
      return false;
  }
}

}  // namespace

MaybeError Server::check_builtin(const Draft& draft) {
  const Role role = draft.type->role;
  if (role == Role::kNamespace) return check_namespace(*this, draft);
  if (role == Role::kPod || role == Role::kClaim) {
    if (auto error = check_ranges(*this, draft)) return error;
  }
  if (auto error = check_security(*this, draft)) return error;
  return role == Role::kPod && draft.subresource.empty() ? check_overhead(*this, draft)
                                                         : std::nullopt;
}

MaybeError Server::check_quotas(const Draft& draft) {
  if (draft.ns.empty() || !charges(draft)) return std::nullopt;
  std::string words = quotas.refusal(*draft.type->shelf, draft.ns, draft.object, draft.live_value);
  // A status says what is so: it is charged whatever the quota is.
  if (draft.subresource == "status") words.clear();
  return refused(draft, words);
}

void Server::write_quota_status(const std::string& key, const rules::Sums& hard,
                                const rules::Sums& used) {
  Shelf* shelf = storage.find_shelf("resourcequotas");
  if (shelf == nullptr) return;
  rewrite(*shelf, key, [&](text::Editor& edit, const Value& quota) -> std::optional<Value> {
    const auto amounts = [&edit](const rules::Sums& sums, const rules::Sums& lines) {
      std::vector<Member> members;
      for (const auto& [line, amount] : sums) {
        if (!lines.contains(line)) continue;
        members.push_back({edit.copy(std::string_view(line)), edit.string(amount.to_string())});
      }
      return edit.object(members);
    };
    const Value status =
        edit.object({{"hard", amounts(hard, hard)}, {"used", amounts(used, hard)}});
    if (text::equal(status, quota["status"])) return std::nullopt;
    return edit.with(quota, "status", status);
  });
}

}  // namespace berth::sim::api
