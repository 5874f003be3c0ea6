#include "explain/pod_security.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "text/nearest.h"
#include "text/path.h"

namespace berth::explain {

using text::Value;

namespace {

constexpr const char* kEnforce = "pod-security.kubernetes.io/enforce";
constexpr const char* kContainers[] = {"initContainers", "containers", "ephemeralContainers"};

bool is_true(const Value* value) { return value != nullptr && value->as_bool(); }
bool is_false(const Value* value) {
  return value != nullptr && value->is_bool() && !value->as_bool();
}

// Capabilities that a container may add under "baseline".
const std::set<std::string_view>& harmless_capabilities() {
  static const std::set<std::string_view> kNames = {
      "AUDIT_WRITE",      "CHOWN",   "DAC_OVERRIDE", "FOWNER",  "FSETID", "KILL",      "MKNOD",
      "NET_BIND_SERVICE", "SETFCAP", "SETGID",       "SETPCAP", "SETUID", "SYS_CHROOT"};
  return kNames;
}

// Volumes that "restricted" allows, by their keys.
const std::set<std::string_view>& plain_volumes() {
  static const std::set<std::string_view> kKinds = {
      "configMap", "csi",    "downwardAPI",          "emptyDir", "ephemeral", "image",
      "projected", "secret", "persistentVolumeClaim"};
  return kKinds;
}

const std::set<std::string_view>& safe_sysctls() {
  static const std::set<std::string_view> kNames = {"kernel.shm_rmid_forced",
                                                    "net.ipv4.ip_local_port_range",
                                                    "net.ipv4.ip_local_reserved_ports",
                                                    "net.ipv4.ip_unprivileged_port_start",
                                                    "net.ipv4.ping_group_range",
                                                    "net.ipv4.tcp_fin_timeout",
                                                    "net.ipv4.tcp_keepalive_intvl",
                                                    "net.ipv4.tcp_keepalive_probes",
                                                    "net.ipv4.tcp_keepalive_time",
                                                    "net.ipv4.tcp_syncookies",
                                                    "net.ipv4.tcp_rmem",
                                                    "net.ipv4.tcp_wmem"};
  return kNames;
}

template <class F>
void each_container(const Value& spec, F&& f) {
  for (const char* list : kContainers) {
    for (const Value& container : spec[list].items()) {
      f(container, std::string(text_at(container, "name")));
    }
  }
}

// Of a security context, the pod's or a container's.
void add_profiles(const Value* context, const std::string& whose, std::vector<std::string>& out) {
  static const std::set<std::string> kLabels = {"", "container_t", "container_init_t",
                                                "container_kvm_t", "container_engine_t"};
  for (const char* profile : {"seccompProfile", "appArmorProfile"}) {
    if (context != nullptr && text_at((*context)[profile], "type") == "Unconfined") {
      out.push_back(fmt::format("{}{} Unconfined", whose, profile));
    }
  }
  const bool label = kLabels.contains(std::string(text_at(context, "seLinuxOptions.type"))) &&
                     text_at(context, "seLinuxOptions.user").empty() &&
                     text_at(context, "seLinuxOptions.role").empty();
  if (!label) out.push_back(whose + "seLinuxOptions");
}

void add_baseline(const Value& spec, std::vector<std::string>& out) {
  for (const char* field : {"hostNetwork", "hostPID", "hostIPC"}) {
    if (is_true(spec.find(field))) out.push_back(fmt::format("{}=true", field));
  }
  for (const Value& volume : at(spec, "volumes").items()) {
    if (volume.find("hostPath") != nullptr) {
      out.push_back(fmt::format("volume {} is a hostPath", std::string(text_at(volume, "name"))));
    }
  }
  const Value* pod = spec.find("securityContext");
  add_profiles(pod, "", out);
  for (const Value& sysctl : at(pod, "sysctls").items()) {
    const std::string name(text_at(sysctl, "name"));
    if (!safe_sysctls().contains(name)) out.push_back("sysctl " + name);
  }
  each_container(spec, [&](const Value& container, const std::string& name) {
    const Value* context = container.find("securityContext");
    if (is_true(find(context, "privileged"))) {
      out.push_back(fmt::format("container {} is privileged", name));
    }
    for (const Value& added : at(context, "capabilities.add").items()) {
      if (harmless_capabilities().contains(added.string())) continue;
      out.push_back(fmt::format("container {} adds {}", name, added.string()));
    }
    for (const Value& port : at(container, "ports").items()) {
      const Value* host = port.find("hostPort");
      if (host != nullptr && host->as_int64().value_or(0) != 0) {
        out.push_back(fmt::format("container {} uses a hostPort", name));
      }
    }
    add_profiles(context, fmt::format("container {} has ", name), out);
    const std::string proc(text_at(context, "procMount"));
    if (!proc.empty() && proc != "Default") {
      out.push_back(fmt::format("container {} has procMount {}", name, proc));
    }
  });
}

bool drops_all(const Value* context) {
  const auto dropped = at(context, "capabilities.drop").items();
  return std::any_of(dropped.begin(), dropped.end(),
                     [](const Value& each) { return each.string() == "ALL"; });
}

void add_restricted(const Value& spec, std::vector<std::string>& out) {
  for (const Value& volume : at(spec, "volumes").items()) {
    for (const text::Member& member : volume.members()) {
      const bool plain =
          member.key == "name" || member.key == "hostPath" || plain_volumes().contains(member.key);
      if (!plain) {
        out.push_back(
            fmt::format("volume {} is a {}", std::string(text_at(volume, "name")), member.key));
      }
    }
  }
  const Value* pod = spec.find("securityContext");
  const bool pod_non_root = is_true(find(pod, "runAsNonRoot"));
  const bool pod_profile = !text_at(pod, "seccompProfile.type").empty();
  const auto as_root = [](const Value* context) {
    const Value* user = find(context, "runAsUser");
    return user != nullptr && user->as_int64().value_or(1) == 0;
  };
  if (as_root(pod)) out.emplace_back("runAsUser=0");
  each_container(spec, [&](const Value& container, const std::string& name) {
    const Value* context = container.find("securityContext");
    const auto say = [&](const char* what) {
      out.push_back(fmt::format("container {} must set {}", name, what));
    };
    if (!is_false(find(context, "allowPrivilegeEscalation"))) {
      say("allowPrivilegeEscalation=false");
    }
    if (!drops_all(context)) say("capabilities.drop=[\"ALL\"]");
    for (const Value& added : at(context, "capabilities.add").items()) {
      const std::string_view capability = added.string();
      if (capability != "NET_BIND_SERVICE" && harmless_capabilities().contains(capability)) {
        out.push_back(fmt::format("container {} adds {}", name, capability));
      }
    }
    const Value* non_root = find(context, "runAsNonRoot");
    if (is_false(non_root) || (non_root == nullptr && !pod_non_root)) say("runAsNonRoot=true");
    if (text_at(context, "seccompProfile.type").empty() && !pod_profile) {
      say("seccompProfile.type RuntimeDefault");
    }
    if (as_root(context)) out.push_back(fmt::format("container {} has runAsUser=0", name));
  });
}

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
  const std::string standard = std::string(at(in, "metadata.labels")[kEnforce].string());
  const std::vector<std::string> wrong = against_standard(*mine.spec, standard);
  if (wrong.empty()) return std::nullopt;
  constexpr std::size_t kMost = 4;
  const std::vector<std::string> first(
      wrong.begin(), wrong.begin() + static_cast<std::ptrdiff_t>(std::min(kMost, wrong.size())));
  std::string list = fmt::format("{}", fmt::join(first, "; "));
  if (wrong.size() > kMost) list += fmt::format("; and {} more", wrong.size() - kMost);
  return Held{.by = Held::By::kSecurity,
              .message = fmt::format("the namespace {} enforces the Pod Security Standard {}, and "
                                     "no pod is made: {}",
                                     ns, standard, list),
              .object = ns,
              .name = standard};
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

std::vector<std::string> against_standard(const Value& spec, std::string_view standard) {
  std::vector<std::string> out;
  if (standard != "baseline" && standard != "restricted") return out;
  add_baseline(spec, out);
  if (standard == "restricted") add_restricted(spec, out);
  return out;
}

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

}  // namespace berth::explain
