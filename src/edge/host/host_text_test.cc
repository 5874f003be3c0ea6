#include "edge/host/host_text.h"

#include <gtest/gtest.h>

namespace berth::host {
namespace {

const std::string kId(64, 'a');
const std::string kUid = "1b2c3d4e-0001-4002-8003-aabbccddeeff";
const std::string kScoredUid = "1b2c3d4e_0001_4002_8003_aabbccddeeff";

TEST(HostText, FindsTheContainerOfAProcess) {
  const std::string slices = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod";
  const struct {
    const char* what;
    std::string text;
    bool found = true;
    std::string uid = kUid;
  } cases[] = {
      {"v2, systemd", "0::" + slices + kScoredUid + ".slice/cri-containerd-" + kId + ".scope\n"},
      {"guaranteed pods have no class in the path",
       "0::/kubepods.slice/kubepods-pod" + kScoredUid + ".slice/cri-containerd-" + kId + ".scope"},
      {"v2, cgroupfs", "0::/kubepods/besteffort/pod" + kUid + "/" + kId + "\n"},
      {"v1: the first line that tells",
       "12:pids:/\n11:memory:/kubepods/burstable/pod" + kUid + "/" + kId + "\n1:name=systemd:/\n"},
      {"v1, systemd", "1:name=systemd:" + slices + kScoredUid + ".slice/docker-" + kId + ".scope"},
      {"containerd with cgroupfs under a service",
       "4:cpu,cpuacct:/system.slice/containerd.service/kubepods-burstable-pod" + kScoredUid +
           ".slice:cri-containerd:" + kId},
      {"CRI-O", "0::" + slices + kScoredUid + ".slice/crio-" + kId + ".scope"},
      {"a container that has cgroups of its own",
       "0::" + slices + kScoredUid + ".slice/cri-containerd-" + kId + ".scope/init.scope"},
      {"seen from another container",
       "0::/../../kubepods-burstable-pod" + kScoredUid + ".slice/cri-containerd-" + kId + ".scope"},
      {"the kubelet's own root", "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" +
                                     kScoredUid + ".slice/cri-containerd-" + kId + ".scope"},
      {"a static pod", "0::/kubepods/pod" + std::string(32, 'f') + "/" + kId, true,
       std::string(32, 'f')},
      {"the monitor of a container",
       "0::" + slices + kScoredUid + ".slice/crio-conmon-" + kId + ".scope", false},
      {"a service", "0::/system.slice/ssh.service", false},
      {"a container of no pod", "0::/system.slice/docker-" + kId + ".scope", false},
      {"the pod's own group", "0::" + slices + kScoredUid + ".slice", false},
      {"a short id", "0::/kubepods/pod" + kUid + "/abc", false},
      {"a UID that is none", "0::/kubepods/pod../" + kId, false},
      {"nothing", "", false},
      {"no colons", "kubepods/pod" + kUid + "/" + kId, false},
  };
  for (const auto& c : cases) {
    const auto found = containers_of_cgroups(c.text);
    EXPECT_EQ(found.size(), c.found ? 1U : 0U) << c.what;
    if (found.empty()) continue;
    EXPECT_EQ(found[0].pod_uid, c.uid) << c.what;
    EXPECT_EQ(found[0].container_id, kId) << c.what;
  }
}

TEST(HostText, ContainersInContainers) {
  const std::string outer(64, 'b'), docker(64, 'd');
  const std::string outer_uid = "9f9f9f9f-0001-4002-8003-aabbccddeeff";
  using Places = std::vector<model::ContainerPlace>;
  const Places one = {{kUid, kId}}, both = {{kUid, kId}, {outer_uid, outer}};
  // A cluster in a container of docker: kind, with systemd inside and without.
  EXPECT_EQ(containers_of_cgroups(
                "0::/system.slice/docker-" + docker +
                ".scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
                "kubelet-kubepods-besteffort-pod" +
                kScoredUid + ".slice/cri-containerd-" + kId + ".scope"),
            one);
  EXPECT_EQ(containers_of_cgroups("11:memory:/docker/" + docker +
                                  "/kubelet/kubepods/burstable/pod" + kUid + "/" + kId),
            one);
  // A cluster in a pod: the process is in the pods of both.
  EXPECT_EQ(containers_of_cgroups("0::/kubepods/pod" + outer_uid + "/" + outer +
                                  "/kubelet/kubepods/pod" + kUid + "/" + kId + "/init"),
            both);
  // Docker in a pod: its containers are the pod's container.
  EXPECT_EQ(containers_of_cgroups("0::/kubepods/pod" + kUid + "/" + kId + "/docker/" + docker),
            one);
}

TEST(HostText, ReadsKernelRecords) {
  const struct {
    const char* record;
    const char* text;  // nullptr: no message of the kernel
  } cases[] = {
      {"4,1234,98765,-;NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus.",
       "NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus."},
      {"6,1,2,-,caller=T1;text; with more;\n SUBSYSTEM=pci\n DEVICE=+pci:0000:18:00.0",
       "text; with more;"},
      {"3,1,2,-;", ""},
      {"12,1,2,-;NVRM: Xid (PCI:0000:18:00): 79, written by a program", nullptr},
      {"-1,1,2,-;x", nullptr},
      {"x,1,2,-;x", nullptr},
      {"4,1,2;three fields", nullptr},
      {" SUBSYSTEM=pci", nullptr},
      {"no record", nullptr},
      {"", nullptr},
  };
  for (const auto& c : cases) {
    const auto found = kernel_message(c.record);
    ASSERT_EQ(found.has_value(), c.text != nullptr) << c.record;
    EXPECT_EQ(found.value_or(""), c.text == nullptr ? "" : c.text);
  }
}

TEST(HostText, ReadsOsRelease) {
  const auto found = os_release_of(
      "# comment\nNAME=\"Debian GNU/Linux\"\nID=debian\nVERSION_ID=\"12\"\nA='x\\y'\nB=\"a\\\"b\"\n"
      "ID_LIKE=\nbad key=1\n=x\nnothing\n  C=1  \nD=\"open");
  const std::map<std::string, std::string> want = {{"NAME", "Debian GNU/Linux"},
                                                   {"ID", "debian"},
                                                   {"VERSION_ID", "12"},
                                                   {"A", "x\\y"},
                                                   {"B", "a\"b"},
                                                   {"ID_LIKE", ""},
                                                   {"C", "1"},
                                                   {"D", "open"}};
  EXPECT_EQ(found, want);
}

TEST(HostText, ReadsMigMinors) {
  const auto found = mig_minors_of(
      "config 1\nmonitor 2\ngpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\ngpu1/gi0/access -4\n"
      "gpu1/gi0/access 99999999999999999999\n 3\nx\n");
  const std::map<std::string, int, std::less<>> want = {
      {"config", 1}, {"monitor", 2}, {"gpu0/gi1/access", 12}, {"gpu0/gi1/ci0/access", 13}};
  EXPECT_EQ(found, want);
}

TEST(HostText, SpellsBusIdsOneWay) {
  const struct {
    const char *text, *id;
  } cases[] = {{"0000:18:00.0", "0000:18:00.0"},
               {"00000000:18:00.0", "0000:18:00.0"},
               {"0000:AF:1F.7", "0000:af:1f.7"},
               {"00010000:18:00.0", "10000:18:00.0"},
               {"10000:18:00.0", "10000:18:00.0"},
               {"18:00.0", ""},
               {"0000:18:00", ""},
               {"0000:1x:00.0", ""},
               {"0000:18:00.0/../..", ""},
               {"pci0000:15", ""},
               {"", ""},
               {"0000:18:00:0", ""},
               {"000000000000018:18:00.0", "0018:18:00.0"}};
  for (const auto& c : cases) EXPECT_EQ(bus_id_of(c.text), c.id) << c.text;
}

TEST(HostText, ReadsNumbers) {
  EXPECT_EQ(number_of("0x10de\n"), 0x10de);
  EXPECT_EQ(number_of(" -1\n"), -1);
  EXPECT_EQ(number_of("08"), 8);
  for (const char* bad : {"", "0x", "1x", "99999999999999999999", "1 2"}) {
    EXPECT_EQ(number_of(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace berth::host
