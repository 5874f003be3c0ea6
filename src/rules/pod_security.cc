#include "rules/pod_security.h"

#include <fmt/format.h>

#include <functional>
#include <set>

#include "text/path.h"

namespace berth::rules {

using text::Value;

namespace {

using Level = Standard::Level;
using Names = std::set<std::string, std::less<>>;
using List = std::vector<std::string>;

constexpr int kNow = 37;  // the version whose checks are the latest

// ---- words -------------------------------------------------------------------------------------

std::string quoted_list(const auto& names) {
  return "\"" + fmt::format("{}", fmt::join(names, "\", \"")) + "\"";
}

std::string_view of(std::size_t count, std::string_view one, std::string_view more) {
  return count == 1 ? one : more;
}

std::string containers_of(const List& names) {
  return fmt::format("{} {}", of(names.size(), "container", "containers"), quoted_list(names));
}

// "pod and containers "a", "b"": who set something.
std::string setters(bool pod, const List& containers) {
  std::string out = pod ? "pod" : "";
  if (!containers.empty()) out += (pod ? " and " : "") + containers_of(containers);
  return out;
}

// ---- what a pod says
// -----------------------------------------------------------------------------

struct Pod {
  const Value& annotations;
  const Value& spec;

  const Value& context() const { return spec["securityContext"]; }
  bool windows() const { return text_at(spec, "os.name") == "windows"; }
  // In a user namespace of its own, where root is nobody outside.
  bool own_users() const {
    const Value* host = spec.find("hostUsers");
    return host != nullptr && host->is_bool() && !host->as_bool();
  }
  void each(const std::function<void(const Value&, const std::string&)>& visit) const {
    for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
      for (const Value& container : spec[list].items()) {
        visit(container, std::string(text_at(container, "name")));
      }
    }
  }
  // The containers that a rule speaks of.
  List those(const std::function<bool(const Value&)>& rule) const {
    List out;
    each([&](const Value& container, const std::string& name) {
      if (rule(container)) out.push_back(name);
    });
    return out;
  }
};

using Found = std::optional<Offence>;

bool is_false(const Value& value) { return value.is_bool() && !value.as_bool(); }

// ---- baseline
// ------------------------------------------------------------------------------------

Found by_apparmor(const Pod& pod) {
  constexpr std::string_view kPrefix = "container.apparmor.security.beta.kubernetes.io/";
  Names values;
  const auto wrong = [&values](const Value& context) {
    const Value* profile = find(context, "appArmorProfile");
    if (profile == nullptr) return false;
    const std::string_view type = text_at(*profile, "type");
    if (type == "RuntimeDefault" || type == "Localhost") return false;
    values.emplace(type);
    return true;
  };
  const bool of_pod = wrong(pod.context());
  const List containers = pod.those([&](const Value& c) { return wrong(c["securityContext"]); });
  std::string who = setters(of_pod, containers);
  List shown(values.begin(), values.end());
  Names notes;
  for (const text::Member& note : pod.annotations.members()) {
    const std::string_view v = note.value.string();
    if (!note.key.starts_with(kPrefix)) continue;
    if (v.empty() || v == "runtime/default" || v.starts_with("localhost/")) continue;
    notes.insert(fmt::format("{}=\"{}\"", note.key, v));
  }
  shown.insert(shown.end(), notes.begin(), notes.end());
  if (!notes.empty()) {
    who +=
        (who.empty() ? "" : " and ") + std::string(of(notes.size(), "annotation", "annotations"));
  }
  if (who.empty()) return std::nullopt;
  return Offence{
      fmt::format("forbidden AppArmor {}", of(shown.size(), "profile", "profiles")),
      fmt::format("{} must not set AppArmor profile type to {}", who, quoted_list(shown))};
}

Found by_added_capabilities(const Pod& pod) {
  static const Names kDefault = {"AUDIT_WRITE", "CHOWN",  "DAC_OVERRIDE",     "FOWNER",  "FSETID",
                                 "KILL",        "MKNOD",  "NET_BIND_SERVICE", "SETFCAP", "SETGID",
                                 "SETPCAP",     "SETUID", "SYS_CHROOT"};
  Names added;
  const List containers = pod.those([&](const Value& container) {
    bool wrong = false;
    for (const Value& each : at(container, "securityContext.capabilities.add").items()) {
      if (kDefault.contains(each.string())) continue;
      wrong = true;
      added.emplace(each.string());
    }
    return wrong;
  });
  if (containers.empty()) return std::nullopt;
  return Offence{"non-default capabilities",
                 fmt::format("{} must not include {} in securityContext.capabilities.add",
                             containers_of(containers), quoted_list(added))};
}

Found by_host_namespaces(const Pod& pod) {
  List set;
  for (const char* field : {"hostNetwork", "hostPID", "hostIPC"}) {
    if (pod.spec[field].as_bool()) set.push_back(fmt::format("{}=true", field));
  }
  if (set.empty()) return std::nullopt;
  return Offence{"host namespaces", fmt::format("{}", fmt::join(set, ", "))};
}

Found by_host_paths(const Pod& pod) {
  List volumes;
  for (const Value& volume : pod.spec["volumes"].items()) {
    if (find(volume, "hostPath") != nullptr) volumes.emplace_back(text_at(volume, "name"));
  }
  if (volumes.empty()) return std::nullopt;
  return Offence{"hostPath volumes", fmt::format("{} {}", of(volumes.size(), "volume", "volumes"),
                                                 quoted_list(volumes))};
}

Found by_host_ports(const Pod& pod) {
  Names ports;
  const List containers = pod.those([&](const Value& container) {
    bool wrong = false;
    for (const Value& port : container["ports"].items()) {
      const std::int64_t host = int_at(port, "hostPort", 0);
      if (host == 0) continue;
      wrong = true;
      ports.insert(std::to_string(host));
    }
    return wrong;
  });
  if (containers.empty()) return std::nullopt;
  return Offence{
      "hostPort",
      fmt::format("{} {} {} {}", containers_of(containers), of(containers.size(), "uses", "use"),
                  of(ports.size(), "hostPort", "hostPorts"), fmt::join(ports, ", "))};
}

Found by_probes(const Pod& pod) {
  Names containers, hosts;
  pod.each([&](const Value& container, const std::string& name) {
    const Value* handlers[] = {&container["livenessProbe"], &container["readinessProbe"],
                               &container["startupProbe"], &container["lifecycle"]["postStart"],
                               &container["lifecycle"]["preStop"]};
    for (const Value* handler : handlers) {
      for (const char* kind : {"httpGet", "tcpSocket"}) {
        const std::string_view host = (*handler)[kind]["host"].string();
        if (host.empty()) continue;
        containers.insert(name);
        hosts.emplace(host);
      }
    }
  });
  if (containers.empty()) return std::nullopt;
  return Offence{
      "probe or lifecycle host",
      fmt::format("{} {} {} {} {}", of(containers.size(), "container", "containers"),
                  quoted_list(containers), of(containers.size(), "uses", "use"),
                  of(hosts.size(), "probe or lifecycle host", "probe or lifecycle hosts"),
                  quoted_list(hosts))};
}

Found by_privilege(const Pod& pod) {
  const List containers =
      pod.those([](const Value& c) { return true_at(c, "securityContext.privileged"); });
  if (containers.empty()) return std::nullopt;
  return Offence{"privileged",
                 containers_of(containers) + " must not set securityContext.privileged=true"};
}

Found by_proc_mount(const Pod& pod) {
  Names mounts;
  const List containers = pod.those([&](const Value& container) {
    const std::string_view mount = text_at(container, "securityContext.procMount");
    if (mount.empty() || mount == "Default") return false;
    mounts.emplace(mount);
    return true;
  });
  if (containers.empty()) return std::nullopt;
  return Offence{"procMount", fmt::format("{} must not set securityContext.procMount to {}",
                                          containers_of(containers), quoted_list(mounts))};
}

Found by_selinux(const Pod& pod, int minor) {
  Names types;
  bool user = false, role = false;
  const auto wrong = [&](const Value& context) {
    const Value& options = context["seLinuxOptions"];
    const std::string_view type = text_at(options, "type");
    const bool may = type.empty() || type == "container_t" || type == "container_init_t" ||
                     type == "container_kvm_t" || (minor >= 31 && type == "container_engine_t");
    if (!may) types.emplace(type);
    const bool has_user = !text_at(options, "user").empty();
    const bool has_role = !text_at(options, "role").empty();
    user = user || has_user;
    role = role || has_role;
    return !may || has_user || has_role;
  };
  const bool of_pod = wrong(pod.context());
  const List containers = pod.those([&](const Value& c) { return wrong(c["securityContext"]); });
  if (!of_pod && containers.empty()) return std::nullopt;
  List set;
  if (!types.empty()) {
    set.push_back(fmt::format("{} {}", of(types.size(), "type", "types"), quoted_list(types)));
  }
  if (user) set.emplace_back("user may not be set");
  if (role) set.emplace_back("role may not be set");
  return Offence{"seLinuxOptions",
                 fmt::format("{} set forbidden securityContext.seLinuxOptions: {}",
                             setters(of_pod, containers), fmt::join(set, "; "))};
}

// What profiles of seccomp are set: by the pod, by containers, and by whom they are not.
struct Seccomp {
  bool pod_wrong = false, pod_right = false;
  List wrong, silent;
  Names values;

  explicit Seccomp(const Pod& pod) {
    const auto reads = [this](const Value& context, bool& right) {
      const Value* profile = find(context, "seccompProfile");
      if (profile == nullptr) return false;
      const std::string_view type = text_at(*profile, "type");
      right = type == "RuntimeDefault" || type == "Localhost";
      if (!right) values.emplace(type);
      return true;
    };
    if (reads(pod.context(), pod_right)) pod_wrong = !pod_right;
    pod.each([&](const Value& container, const std::string& name) {
      bool right = false;
      const bool said = reads(container["securityContext"], right);
      if (said && !right) wrong.push_back(name);
      if (!said && !pod_right) silent.push_back(name);
    });
  }
};

Found by_seccomp(const Pod& pod) {
  const Seccomp said(pod);
  if (!said.pod_wrong && said.wrong.empty()) return std::nullopt;
  return Offence{"seccompProfile",
                 fmt::format("{} must not set securityContext.seccompProfile.type to {}",
                             setters(said.pod_wrong, said.wrong), quoted_list(said.values))};
}

Found by_sysctls(const Pod& pod, int minor) {
  static const std::vector<std::pair<int, std::string_view>> kSafe = {
      // since when
      {0, "kernel.shm_rmid_forced"},
      {0, "net.ipv4.ip_local_port_range"},
      {0, "net.ipv4.tcp_syncookies"},
      {0, "net.ipv4.ping_group_range"},
      {0, "net.ipv4.ip_unprivileged_port_start"},
      {27, "net.ipv4.ip_local_reserved_ports"},
      {29, "net.ipv4.tcp_keepalive_time"},
      {29, "net.ipv4.tcp_fin_timeout"},
      {29, "net.ipv4.tcp_keepalive_intvl"},
      {29, "net.ipv4.tcp_keepalive_probes"},
      {32, "net.ipv4.tcp_rmem"},
      {32, "net.ipv4.tcp_wmem"},
      {37, "net.ipv4.tcp_slow_start_after_idle"},
      {37, "net.ipv4.tcp_notsent_lowat"}};
  List names;
  for (const Value& sysctl : pod.context()["sysctls"].items()) {
    const std::string_view name = text_at(sysctl, "name");
    bool safe = false;
    for (const auto& [since, known] : kSafe) safe = safe || (known == name && since <= minor);
    if (!safe) names.emplace_back(name);
  }
  if (names.empty()) return std::nullopt;
  return Offence{"forbidden sysctls", fmt::format("{}", fmt::join(names, ", "))};
}

Found by_host_process(const Pod& pod) {
  const auto sets = [](const Value& context) {
    return true_at(context, "windowsOptions.hostProcess");
  };
  const bool of_pod = sets(pod.context());
  const List containers = pod.those([&](const Value& c) { return sets(c["securityContext"]); });
  if (!of_pod && containers.empty()) return std::nullopt;
  return Offence{"hostProcess",
                 setters(of_pod, containers) +
                     " must not set securityContext.windowsOptions.hostProcess=true"};
}

// ---- restricted
// ----------------------------------------------------------------------------------

Found by_escalation(const Pod& pod) {
  const List containers = pod.those([](const Value& container) {
    return !is_false(at(container, "securityContext.allowPrivilegeEscalation"));
  });
  if (containers.empty()) return std::nullopt;
  return Offence{
      "allowPrivilegeEscalation != false",
      containers_of(containers) + " must set securityContext.allowPrivilegeEscalation=false"};
}

Found by_kept_capabilities(const Pod& pod) {
  Names added;
  const List keeping = pod.those([](const Value& container) {
    for (const Value& each : at(container, "securityContext.capabilities.drop").items()) {
      if (each.string() == "ALL") return false;
    }
    return true;
  });
  const List adding = pod.those([&](const Value& container) {
    bool wrong = false;
    for (const Value& each : at(container, "securityContext.capabilities.add").items()) {
      if (each.string() == "NET_BIND_SERVICE") continue;
      wrong = true;
      added.emplace(each.string());
    }
    return wrong;
  });
  List details;
  if (!keeping.empty()) {
    details.push_back(containers_of(keeping) +
                      " must set securityContext.capabilities.drop=[\"ALL\"]");
  }
  if (!adding.empty()) {
    details.push_back(fmt::format("{} must not include {} in securityContext.capabilities.add",
                                  containers_of(adding), quoted_list(added)));
  }
  if (details.empty()) return std::nullopt;
  return Offence{"unrestricted capabilities", fmt::format("{}", fmt::join(details, "; "))};
}

Found by_volumes(const Pod& pod) {
  static const Names kPlain = {"configMap", "csi",       "downwardAPI",
                               "emptyDir",  "ephemeral", "image",
                               "projected", "secret",    "persistentVolumeClaim"};
  List volumes;
  Names types;
  for (const Value& volume : pod.spec["volumes"].items()) {
    std::string type = "unknown";
    bool plain = false;
    for (const text::Member& member : volume.members()) {
      if (member.key == "name" || member.value.is_null()) continue;
      plain = plain || kPlain.contains(member.key);
      type = member.key;
    }
    if (plain) continue;
    volumes.emplace_back(text_at(volume, "name"));
    types.insert(type);
  }
  if (volumes.empty()) return std::nullopt;
  return Offence{"restricted volume types",
                 fmt::format("{} {} {} {} {}", of(volumes.size(), "volume", "volumes"),
                             quoted_list(volumes), of(volumes.size(), "uses", "use"),
                             of(types.size(), "restricted volume type", "restricted volume types"),
                             quoted_list(types))};
}

Found by_root(const Pod& pod) {
  const Value& of_all = pod.context()["runAsNonRoot"];
  List wrong, silent;
  pod.each([&](const Value& container, const std::string& name) {
    const Value& own = at(container, "securityContext.runAsNonRoot");
    if (is_false(own)) wrong.push_back(name);
    if (!own.is_bool() && !of_all.as_bool()) silent.push_back(name);
  });
  constexpr const char* kReason = "runAsNonRoot != true";
  if (is_false(of_all) || !wrong.empty()) {
    return Offence{kReason, setters(is_false(of_all), wrong) +
                                " must not set securityContext.runAsNonRoot=false"};
  }
  if (silent.empty()) return std::nullopt;
  return Offence{kReason, fmt::format("pod or {} must set securityContext.runAsNonRoot=true",
                                      containers_of(silent))};
}

Found by_user(const Pod& pod) {
  const auto is_root = [](const Value& context) { return int_at(context, "runAsUser", 1) == 0; };
  const bool of_pod = is_root(pod.context());
  const List containers = pod.those([&](const Value& c) { return is_root(c["securityContext"]); });
  if (!of_pod && containers.empty()) return std::nullopt;
  return Offence{"runAsUser=0", setters(of_pod, containers) + " must not set runAsUser=0"};
}

Found by_missing_seccomp(const Pod& pod) {
  if (Found wrong = by_seccomp(pod)) return wrong;
  const Seccomp said(pod);
  if (said.silent.empty()) return std::nullopt;
  return Offence{"seccompProfile",
                 fmt::format("pod or {} must set securityContext.seccompProfile.type to "
                             "\"RuntimeDefault\" or \"Localhost\"",
                             containers_of(said.silent))};
}

// ---- all checks, in the order of their names
// -----------------------------------------------------

void add_baseline(const Pod& pod, int minor, bool restricted, std::vector<Offence>& out) {
  const auto add = [&out](Found found) {
    if (found) out.push_back(std::move(*found));
  };
  // A restricted check in the place of a baseline one.
  const bool capabilities = restricted && minor >= 22;
  const bool seccomp = restricted && minor >= 19;
  const bool proc = restricted && minor >= 35;
  add(by_apparmor(pod));
  if (!capabilities) add(by_added_capabilities(pod));
  add(by_host_namespaces(pod));
  if (!restricted) add(by_host_paths(pod));
  add(by_host_ports(pod));
  if (minor >= 34) add(by_probes(pod));
  add(by_privilege(pod));
  if (!proc && !(minor >= 35 && pod.own_users())) add(by_proc_mount(pod));
  add(by_selinux(pod, minor));
  if (!seccomp) add(by_seccomp(pod));
  add(by_sysctls(pod, minor));
  add(by_host_process(pod));
}

void add_restricted(const Pod& pod, int minor, std::vector<Offence>& out) {
  const auto add = [&out](Found found) {
    if (found) out.push_back(std::move(*found));
  };
  const bool windows = minor >= 25 && pod.windows();
  const bool own_users = minor >= 35 && pod.own_users();
  if (minor >= 8 && !windows) add(by_escalation(pod));
  if (minor >= 22 && !windows) add(by_kept_capabilities(pod));
  if (minor >= 35) add(by_proc_mount(pod));
  add(by_volumes(pod));
  if (!own_users) add(by_root(pod));
  if (minor >= 23 && !own_users) add(by_user(pod));
  if (minor >= 19 && !windows) add(by_missing_seccomp(pod));
}

// ---- labels
// --------------------------------------------------------------------------------------

std::optional<Level> level_named(std::string_view name) {
  for (const Level level : {Level::kPrivileged, Level::kBaseline, Level::kRestricted}) {
    if (name_of(level) == name) return level;
  }
  return std::nullopt;
}

std::optional<int> minor_named(std::string_view name) {
  if (name == "latest") return Standard::kLatest;
  if (!name.starts_with("v1.")) return std::nullopt;
  const std::string_view digits = name.substr(3);
  const bool number =
      !digits.empty() && digits.size() < 7 && digits.find_first_not_of("0123456789") == digits.npos;
  if (!number || (digits.size() > 1 && digits[0] == '0')) return std::nullopt;
  return std::stoi(std::string(digits));
}

}  // namespace

std::string_view name_of(Level level) {
  switch (level) {
    case Level::kPrivileged:
      return "privileged";
    case Level::kBaseline:
      return "baseline";
    case Level::kRestricted:
      return "restricted";
  }
  return "";
}

std::string name_of(const Standard& standard) {
  const std::string version =
      standard.minor == Standard::kLatest ? "latest" : "v1." + std::to_string(standard.minor);
  return std::string(name_of(standard.level)) + ":" + version;
}

SecurityPolicy policy_of(const Value& labels, std::vector<WrongLabel>* wrong) {
  SecurityPolicy out;
  Standard audit;
  bool enforced = false, warns = false, warns_of_version = false;
  const auto read = [&](const char* mode, Standard& standard, Level otherwise, bool* leveled,
                        bool* versioned) {
    const std::string label = std::string("pod-security.kubernetes.io/") + mode;
    const auto complain = [&](const std::string& of, std::string_view value, const char* words) {
      if (wrong != nullptr) wrong->push_back({of, std::string(value), words});
    };
    if (const Value* level = labels.find(label)) {
      const auto named = level_named(level->string());
      if (leveled != nullptr) *leveled = named.has_value() || otherwise != Level::kRestricted;
      standard.level = named.value_or(otherwise);
      if (!named)
        complain(label, level->string(), "must be one of privileged, baseline, restricted");
    }
    if (const Value* version = labels.find(label + "-version")) {
      if (versioned != nullptr) *versioned = true;
      const auto named = minor_named(version->string());
      standard.minor = named.value_or(Standard::kLatest);
      if (!named) complain(label + "-version", version->string(), "must be \"latest\" or \"v1.x\"");
    }
  };
  read("enforce", out.enforce, Level::kRestricted, &enforced, nullptr);
  read("audit", audit, Level::kPrivileged, nullptr, nullptr);
  read("warn", out.warn, Level::kPrivileged, &warns, &warns_of_version);
  // Who is refused pods is warned of what will make some.
  if (!warns && enforced && out.enforce.level > out.warn.level) {
    out.warn.level = out.enforce.level;
    if (!warns_of_version) out.warn.minor = out.enforce.minor;
  }
  return out;
}

std::vector<Offence> offences(const Standard& standard, const Value& annotations,
                              const Value& spec) {
  std::vector<Offence> out;
  if (standard.level == Level::kPrivileged) return out;
  const Pod pod{annotations, spec};
  const int minor = std::min(standard.minor, kNow);
  const bool restricted = standard.level == Level::kRestricted;
  add_baseline(pod, minor, restricted, out);
  if (restricted) add_restricted(pod, minor, out);
  return out;
}

std::string words_of(const std::vector<Offence>& offences) {
  std::string out;
  for (const Offence& each : offences) {
    out += (out.empty() ? "" : ", ") + each.reason;
    if (!each.detail.empty()) out += " (" + each.detail + ")";
  }
  return out;
}

std::string reasons_of(const std::vector<Offence>& offences) {
  std::string out;
  for (const Offence& each : offences) out += (out.empty() ? "" : ", ") + each.reason;
  return out;
}

std::optional<std::string> violates(const Standard& standard, const Value& annotations,
                                    const Value& spec) {
  const std::vector<Offence> found = offences(standard, annotations, spec);
  if (found.empty()) return std::nullopt;
  return fmt::format("violates PodSecurity \"{}\": {}", name_of(standard), words_of(found));
}

}  // namespace berth::rules
