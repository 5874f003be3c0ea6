#include "rules/pod_security.h"

#include <gtest/gtest.h>

#include "text/yaml.h"

namespace berth::rules {
namespace {

using Level = Standard::Level;

text::Document object_of(std::string_view yaml) {
  auto parsed = text::parse_yaml(yaml);
  EXPECT_TRUE(parsed.ok() && parsed->size() == 1) << yaml;
  return parsed.ok() && !parsed->empty() ? std::move(parsed->front()) : text::Document();
}

std::string found(Standard standard, std::string_view spec, std::string_view notes = "{}") {
  const text::Document pod = object_of(spec), annotations = object_of(notes);
  return words_of(offences(standard, annotations.root(), pod.root()));
}

TEST(PodSecurity, BaselineSentences) {
  struct Case {
    const char* spec;
    const char* words;
  };
  const Case cases[] = {
      {"containers: [{name: c}]", ""},
      {"containers: [{name: c, securityContext: {privileged: true}}]",
       R"(privileged (container "c" must not set securityContext.privileged=true))"},
      {"{hostNetwork: true, hostPID: true, containers: []}",
       "host namespaces (hostNetwork=true, hostPID=true)"},
      {"volumes: [{name: a, hostPath: {path: /a}}, {name: b, hostPath: {path: /b}}]",
       R"(hostPath volumes (volumes "a", "b"))"},
      {"containers: [{name: c, ports: [{hostPort: 80}, {hostPort: 443}]}]",
       R"(hostPort (container "c" uses hostPorts 443, 80))"},
      {"{initContainers: [{name: i, securityContext: {capabilities: {add: [NET_RAW]}}}], "
       "containers: [{name: c, securityContext: {capabilities: {add: [CHOWN, SYS_ADMIN]}}}]}",
       R"(non-default capabilities (containers "i", "c" must not include "NET_RAW", )"
       R"("SYS_ADMIN" in )"
       R"(securityContext.capabilities.add))"},
      {"containers: [{name: c, securityContext: {procMount: Unmasked}}]",
       R"(procMount (container "c" must not set securityContext.procMount to "Unmasked"))"},
      {"{hostUsers: false, containers: [{name: c, securityContext: {procMount: Unmasked}}]}", ""},
      {"{securityContext: {seccompProfile: {type: Unconfined}}, containers: [{name: c, "
       "securityContext: {seccompProfile: {type: Unconfined}}}]}",
       R"(seccompProfile (pod and container "c" must not set )"
       R"(securityContext.seccompProfile.type to )"
       R"("Unconfined"))"},
      {"{securityContext: {seLinuxOptions: {type: x, user: u}}}",
       R"(seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type )"
       R"("x"; user may not )"
       R"(be set))"},
      {"{securityContext: {sysctls: [{name: net.ipv4.tcp_rmem}, {name: kernel.x}]}}",
       "forbidden sysctls (kernel.x)"},
      {"containers: [{name: c, livenessProbe: {httpGet: {host: h}}}]",
       R"(probe or lifecycle host (container "c" uses probe or lifecycle host "h"))"},
      {"{securityContext: {appArmorProfile: {type: Unconfined}}}",
       R"(forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined"))"},
      {"containers: [{name: c, securityContext: {windowsOptions: {hostProcess: true}}}]",
       R"(hostProcess (container "c" must not set )"
       R"(securityContext.windowsOptions.hostProcess=true))"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(found({Level::kBaseline}, c.spec), c.words) << c.spec;
    EXPECT_EQ(found({Level::kPrivileged}, c.spec), "");
  }
  EXPECT_EQ(found({Level::kBaseline}, "containers: []",
                  "{container.apparmor.security.beta.kubernetes.io/c: unconfined}"),
            "forbidden AppArmor profile (annotation must not set AppArmor profile type to "
            "\"container.apparmor.security.beta.kubernetes.io/c=\"unconfined\"\")");
}

TEST(PodSecurity, RestrictedSentences) {
  EXPECT_EQ(
      found({Level::kRestricted}, "containers: [{name: c}]"),
      R"(allowPrivilegeEscalation != false (container "c" must set )"
      R"(securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container )"
      R"("c" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or )"
      R"(container "c" must set securityContext.runAsNonRoot=true), seccompProfile (pod or )"
      R"(container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or )"
      R"("Localhost"))");
  constexpr const char* kGood = R"(
securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
volumes: [{name: v, emptyDir: {}}]
containers:
- name: c
  securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
)";
  EXPECT_EQ(found({Level::kRestricted}, kGood), "");
  EXPECT_EQ(found({Level::kRestricted}, std::string(kGood) + "hostUsers: false\n"), "");
  const std::string more = std::string(kGood) +
                           "initContainers: [{name: i, securityContext: {runAsUser: 0, "
                           "allowPrivilegeEscalation: false, capabilities: {drop: [ALL], "
                           "add: [CHOWN]}, runAsNonRoot: false}}]\n";
  EXPECT_EQ(
      found({Level::kRestricted}, more),
      R"(unrestricted capabilities (container "i" must not include "CHOWN" in )"
      R"(securityContext.capabilities.add), runAsNonRoot != true (container "i" must not set )"
      R"(securityContext.runAsNonRoot=false), runAsUser=0 (container "i" must not set )"
      R"(runAsUser=0))");
  EXPECT_EQ(
      found({Level::kRestricted, 22},
            "{os: {name: windows}, securityContext: {runAsNonRoot: "
            "true}, containers: [{name: c}]}"),
      R"(allowPrivilegeEscalation != false (container "c" must set )"
      R"(securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container )"
      R"("c" must set securityContext.capabilities.drop=["ALL"]), seccompProfile (pod or )"
      R"(container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or )"
      R"("Localhost"))");
  EXPECT_EQ(found({Level::kRestricted},
                  "volumes: [{name: h, hostPath: {path: /}}, {name: net, nfs: "
                  "{path: /}}]"),
            R"(restricted volume types (volumes "h", "net" use restricted volume )"
            R"(types "hostPath", )"
            R"("nfs"))");
}

TEST(PodSecurity, Labels) {
  const auto policy = [](std::string_view labels, std::vector<WrongLabel>* wrong = nullptr) {
    const text::Document read = object_of(labels);
    const SecurityPolicy out = policy_of(read.root(), wrong);
    return name_of(out.enforce) + " " + name_of(out.warn);
  };
  EXPECT_EQ(policy("{}"), "privileged:latest privileged:latest");
  EXPECT_EQ(policy("{pod-security.kubernetes.io/enforce: baseline}"),
            "baseline:latest baseline:latest");
  EXPECT_EQ(policy("{pod-security.kubernetes.io/enforce: baseline, "
                   "pod-security.kubernetes.io/enforce-version: v1.30, "
                   "pod-security.kubernetes.io/warn: restricted}"),
            "baseline:v1.30 restricted:latest");
  std::vector<WrongLabel> wrong;
  EXPECT_EQ(policy("{pod-security.kubernetes.io/enforce: strict, "
                   "pod-security.kubernetes.io/enforce-version: '1.30', "
                   "pod-security.kubernetes.io/warn: x}",
                   &wrong),
            "restricted:latest privileged:latest");
  ASSERT_EQ(wrong.size(), 3u);
  EXPECT_EQ(wrong[0].words, "must be one of privileged, baseline, restricted");
  EXPECT_EQ(wrong[1].label, "pod-security.kubernetes.io/enforce-version");
  EXPECT_EQ(wrong[1].words, "must be \"latest\" or \"v1.x\"");
  const text::Document pod = object_of("{hostPID: true}");
  EXPECT_EQ(violates({Level::kBaseline, 30}, text::Value(), pod.root()),
            "violates PodSecurity \"baseline:v1.30\": host namespaces (hostPID=true)");
}

}  // namespace
}  // namespace berth::rules
