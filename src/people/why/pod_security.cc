#include "people/why/pod_security.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "rules/pod_security.h"
#include "text/nearest.h"
#include "text/path.h"

namespace berth::people {

using text::Value;

namespace {

constexpr const char* kContainers[] = {"initContainers", "containers", "ephemeralContainers"};

std::optional<Held> by_account(const ObjectSource& objects, const PodTemplate& mine,
                               const std::string& ns) {
  std::string account(text_at(mine.spec, "serviceAccountName"));
  if (account.empty()) account = text_at(mine.spec, "serviceAccount");
  if (account.empty()) return std::nullopt;
  std::vector<std::string> names;
  for (const RawObject& raw : objects.of_kind("ServiceAccount")) {
    if (raw.ns != ns) continue;
    if (raw.name == account) return std::nullopt;
    names.push_back(raw.name);
  }
  if (names.empty()) return std::nullopt;  // they were not listed
  return Held{.by = Held::By::kAccount,
              .message = fmt::format("the ServiceAccount {} does not exist in {}: no pod is made",
                                     account, ns),
              .object = account,
              .name = text::nearest(account, names)};
}

std::optional<Held> by_standard(const Value& in, const PodTemplate& mine, const std::string& ns) {
  const rules::Standard standard = rules::policy_of(at(in, "metadata.labels")).enforce;
  const Value& notes = mine.whole == nullptr ? Value() : at(mine.whole, "metadata.annotations");
  const std::vector<rules::Offence> wrong = rules::offences(standard, notes, *mine.spec);
  if (wrong.empty()) return std::nullopt;
  const std::string level(rules::name_of(standard.level));
  return Held{.by = Held::By::kSecurity,
              .message = fmt::format("the namespace {} enforces the Pod Security Standard {}, and "
                                     "no pod is made: {}",
                                     ns, level, rules::words_of(wrong)),
              .object = ns,
              .name = level};
}

Tree& context_of(Tree& of) { return of["securityContext"]; }

void drop_true(Tree& at, const char* field) {
  const Tree* found = at.find(field);
  if (found != nullptr && *found == Tree::of_bool(true)) at.erase(field);
}

// What no standard lets a context have, the pod's or a container's.
void drop_wide(Tree& of, bool restricted) {
  Tree* context = of.find("securityContext");
  if (context == nullptr) return;
  for (const char* field : {"privileged", "procMount", "seLinuxOptions", "sysctls"}) {
    context->erase(field);
  }
  for (const char* field : {"seccompProfile", "appArmorProfile"}) {
    const Tree* profile = context->find(field);
    const Tree* type = profile == nullptr ? nullptr : profile->find("type");
    if (type != nullptr && type->string() == "Unconfined") context->erase(field);
  }
  if (Tree* capabilities = context->find("capabilities")) capabilities->erase("add");
  if (restricted) context->erase("runAsUser");
  if (restricted) context->erase("runAsNonRoot");
  if (context->members().empty()) of.erase("securityContext");
}

}  // namespace

void meet_standard(Tree& spec, std::string_view standard) {
  for (const char* field : {"hostNetwork", "hostPID", "hostIPC"}) drop_true(spec, field);
  const bool restricted = standard == "restricted";
  drop_wide(spec, restricted);
  if (restricted) {
    context_of(spec)["runAsNonRoot"] = Tree::of_bool(true);
    context_of(spec)["seccompProfile"]["type"] = Tree::of_text("RuntimeDefault");
  }
  for (const char* list : kContainers) {
    if (spec.find(list) == nullptr) continue;
    for (Tree& container : spec[list].items()) {
      if (Tree* ports = container.find("ports")) {
        for (Tree& port : ports->items()) port.erase("hostPort");
      }
      drop_wide(container, restricted);
      if (!restricted) continue;
      context_of(container)["allowPrivilegeEscalation"] = Tree::of_bool(false);
      Tree all;
      all.items().push_back(Tree::of_text("ALL"));
      context_of(container)["capabilities"]["drop"] = std::move(all);
    }
  }
}

std::optional<Held> by_admission(const ObjectSource& objects, const PodTemplate& mine) {
  const std::string& ns = mine.object->ns;
  const auto at = objects.find("Namespace", "", ns);
  if (at) {
    const bool ends = !text_at(at->value, "metadata.deletionTimestamp").empty() ||
                      text_at(at->value, "status.phase") == "Terminating";
    if (ends) {
      return Held{.by = Held::By::kNamespace,
                  .message = fmt::format(
                      "the namespace {} is being deleted: nothing new is made in it", ns),
                  .object = ns};
    }
  }
  if (auto held = by_account(objects, mine, ns)) return held;
  return at ? by_standard(*at->value, mine, ns) : std::nullopt;
}

}  // namespace berth::people
