#include <sys/socket.h>
#include <sys/un.h>

#include "edge/host/fd.h"
#include "edge/host/host.h"
#include "edge/host/host_for_test.h"

namespace berth::host {
namespace {

using advertise::DriverFiles;
using Pairs = std::vector<std::pair<std::string, std::string>>;  // below the root, in the container

class DriverFilesTest : public testing::Test {
 protected:
  static model::GpuInventory one_gpu() {
    model::GpuInventory inventory;
    inventory.driver_version = "580.159.04";
    model::GpuDevice gpu;
    gpu.minor = 3;
    gpu.pci_bus_id = "0000:18:00.0";
    inventory.gpus.push_back(gpu);
    return inventory;
  }
  DriverFiles find(const model::GpuInventory& inventory) const {
    return find_driver_files(root_.path(), "", inventory, false,
                             {.proc = root_.at("proc"), .sys = root_.at("sys")});
  }
  // Every host path must be below the root.
  Pairs pairs(const std::vector<DriverFiles::Mount>& mounts) const {
    Pairs out;
    for (const auto& mount : mounts) {
      EXPECT_TRUE(mount.host.starts_with(root_.path() + "/")) << mount.host;
      out.emplace_back(mount.host.substr(std::min(root_.path().size(), mount.host.size())),
                       mount.container);
    }
    return out;
  }

  TestFolder root_;
};

TEST_F(DriverFilesTest, FindsLibrariesAndTheNamesOfTheirLinks) {
  const std::string lib = "usr/lib/x86_64-linux-gnu/";
  root_.write(lib + "libcuda.so.580.159.04", "x");
  root_.link(lib + "libcuda.so.1", "libcuda.so.580.159.04");
  root_.link(lib + "libcuda.so", "libcuda.so.1");
  root_.write(lib + "libnvidia-nvvm.so.580.159.04", "x");
  root_.link(lib + "libnvidia-nvvm.so.4", "/usr/lib/x86_64-linux-gnu/libnvidia-nvvm.so.580.159.04");
  root_.write(lib + "libnvidia-nvvm70.so.4", "x");
  root_.write(lib + "vdpau/libvdpau_nvidia.so.580.159.04", "x");
  root_.write(lib + "libcuda.so.535.10", "of another driver");
  root_.write(lib + "libc.so.6", "x");
  root_.folder(lib + "libfolder.so.580.159.04");
  root_.link(lib + "libdangling.so.580.159.04", "nowhere");
  root_.link("lib", "usr/lib");
  root_.write("usr/lib/libcuda.so.580.159.04", std::string("\x7f"
                                                           "ELF\x01 for 32 bits"));
  const DriverFiles found = find(one_gpu());
  const std::string path = "/usr/lib/x86_64-linux-gnu/";
  const Pairs want = {
      {path + "libcuda.so.580.159.04", path + "libcuda.so"},
      {path + "libcuda.so.580.159.04", path + "libcuda.so.1"},
      {path + "libcuda.so.580.159.04", path + "libcuda.so.580.159.04"},
      {path + "libnvidia-nvvm.so.580.159.04", path + "libnvidia-nvvm.so.4"},
      {path + "libnvidia-nvvm.so.580.159.04", path + "libnvidia-nvvm.so.580.159.04"},
      {path + "libnvidia-nvvm70.so.4", path + "libnvidia-nvvm70.so.4"},
      {path + "vdpau/libvdpau_nvidia.so.580.159.04", path + "vdpau/libvdpau_nvidia.so.580.159.04"},
  };
  EXPECT_EQ(pairs(found.libraries), want);
}

// A driver in a place of its own, programs behind scripts, and images of both families.
TEST_F(DriverFilesTest, LibrariesStandWhereLoadersLook) {
  root_.write("usr/local/nvidia/lib64/libcuda.so.580.159.04", "x");
  root_.link("usr/local/nvidia/lib64/libcuda.so.1", "libcuda.so.580.159.04");
  root_.write("usr/lib64/libnvidia-ml.so.580.159.04", "x");
  root_.write("usr/lib64/vdpau/libvdpau_nvidia.so.580.159.04", "x");
  root_.write("usr/bin/nvidia-smi", "#!/bin/sh\nexec /usr/local/nvidia/bin/nvidia-smi \"$@\"\n");
  root_.write("usr/local/nvidia/bin/nvidia-smi", "x");
  const DriverFiles found = find(one_gpu());
  std::string debian = "/usr/lib/x86_64-linux-gnu/";
#if defined(__aarch64__)
  debian = "/usr/lib/aarch64-linux-gnu/";
#endif
  const std::string cuda = "/usr/local/nvidia/lib64/libcuda.so.580.159.04";
  const std::string ml = "/usr/lib64/libnvidia-ml.so.580.159.04";
  EXPECT_EQ(pairs(found.libraries), (Pairs{{ml, ml},
                                           {"/usr/lib64/vdpau/libvdpau_nvidia.so.580.159.04",
                                            "/usr/lib64/vdpau/libvdpau_nvidia.so.580.159.04"},
                                           {cuda, "/usr/local/nvidia/lib64/libcuda.so.1"},
                                           {cuda, cuda}}));
  EXPECT_EQ(pairs(found.for_loaders), (Pairs{{cuda, debian + "libcuda.so.1"},
                                             {cuda, debian + "libcuda.so.580.159.04"},
                                             {ml, debian + "libnvidia-ml.so.580.159.04"},
                                             {cuda, "/usr/lib64/libcuda.so.1"},
                                             {cuda, "/usr/lib64/libcuda.so.580.159.04"}}));
  const std::string smi = "/usr/local/nvidia/bin/nvidia-smi";
  EXPECT_EQ(pairs(found.binaries), (Pairs{{smi, "/usr/bin/nvidia-smi"}, {smi, smi}}));
}

TEST_F(DriverFilesTest, FollowsDebiansAlternatives) {
  const std::string current = "/usr/lib/aarch64-linux-gnu/nvidia/current/";
  root_.write(current + "libcuda.so.580.159.04", "x");
  root_.link(current + "libcuda.so.1", "libcuda.so.580.159.04");
  root_.link("etc/alternatives/libcuda", current + "libcuda.so.1");
  root_.link("usr/lib/aarch64-linux-gnu/libcuda.so.1", "/etc/alternatives/libcuda");
  root_.write("usr/lib/nvidia/current/nvidia-smi", "x");
  root_.link("etc/alternatives/smi", "/usr/lib/nvidia/current/nvidia-smi");
  root_.link("usr/bin/nvidia-smi", "/etc/alternatives/smi");
  const DriverFiles found = find(one_gpu());
  const std::string file = current + "libcuda.so.580.159.04";
  EXPECT_EQ(pairs(found.libraries), (Pairs{{file, "/usr/lib/aarch64-linux-gnu/libcuda.so.1"},
                                           {file, current + "libcuda.so.1"},
                                           {file, file}}));
  EXPECT_EQ(pairs(found.binaries),
            (Pairs{{"/usr/lib/nvidia/current/nvidia-smi", "/usr/bin/nvidia-smi"}}));
}

TEST_F(DriverFilesTest, NothingOutsideTheRootIsFound) {
  const TestFolder outside;
  outside.write("libcuda.so.580.159.04", "x");
  outside.write("nvidia-smi", "x");
  outside.write("gsp_ga10x.bin", "x");
  root_.folder("usr/lib64");
  root_.link("usr/lib64/libcuda.so.580.159.04", outside.at("libcuda.so.580.159.04"));
  root_.link("usr/lib64/libup.so.580.159.04",
             "../../../../../../../" + outside.path().substr(1) + "/libcuda.so.580.159.04");
  root_.link("lib64", outside.path());
  root_.link("usr/bin/nvidia-smi", outside.at("nvidia-smi"));
  root_.link("lib/firmware/nvidia/580.159.04", outside.path());
  const DriverFiles found = find(one_gpu());
  EXPECT_EQ(pairs(found.libraries), Pairs());
  EXPECT_EQ(pairs(found.binaries), Pairs());
  EXPECT_EQ(pairs(found.firmware), Pairs());
}

TEST_F(DriverFilesTest, HostileNamesAreLeftOut) {
  for (const char* name : {"lib a.so.580.159.04", "lib\n.so.580.159.04", "lib\xff.so.580.159.04",
                           "lib\".so.580.159.04", "lib$(x).so.580.159.04"}) {
    root_.write(std::string("usr/lib64/") + name, "x");
  }
  root_.write("usr/lib64/libgood.so.580.159.04", "x");
  EXPECT_EQ(find(one_gpu()).libraries.size(), 1U);
  model::GpuInventory inventory = one_gpu();
  inventory.driver_version = "../../etc";
  EXPECT_TRUE(find(inventory).firmware.empty());
  inventory.driver_version = "";
  EXPECT_TRUE(find(inventory).libraries.empty());
}

TEST_F(DriverFilesTest, FindsProgramsFirmwareConfigsAndSockets) {
  for (const char* name :
       {"usr/bin/nvidia-smi", "usr/bin/nvidia-debugdump", "usr/bin/nvidia-cuda-mps-control",
        "usr/bin/nvidia-cuda-mps-server", "usr/sbin/nvidia-persistenced", "usr/bin/bash",
        "lib/firmware/nvidia/580.159.04/gsp_tu10x.bin", "lib/firmware/nvidia/535/gsp_tu10x.bin",
        "lib/firmware/nvidia/580.159.04/other", "etc/vulkan/icd.d/nvidia_icd.json",
        "run/nvidia-fabricmanager/socket"}) {
    root_.write(name, "x");
  }
  root_.folder("run/nvidia-persistenced");
  const Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  root_.at("run/nvidia-persistenced/socket").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);

  const auto same = [](const std::vector<std::string>& paths) {
    Pairs out;
    for (const std::string& path : paths) out.emplace_back(path, path);
    return out;
  };
  const DriverFiles found = find(one_gpu());
  EXPECT_EQ(
      pairs(found.binaries),
      same({"/usr/bin/nvidia-cuda-mps-control", "/usr/bin/nvidia-cuda-mps-server",
            "/usr/bin/nvidia-debugdump", "/usr/bin/nvidia-smi", "/usr/sbin/nvidia-persistenced"}));
  EXPECT_EQ(pairs(found.firmware), same({"/lib/firmware/nvidia/580.159.04/gsp_tu10x.bin"}));
  EXPECT_EQ(pairs(found.configs), same({"/etc/vulkan/icd.d/nvidia_icd.json"}));
  EXPECT_EQ(pairs(found.sockets), same({"/run/nvidia-persistenced/socket"}))
      << "a file under a socket's name is no socket";
}

TEST_F(DriverFilesTest, NamesDeviceNodes) {
  for (const char* name : {"dev/nvidiactl", "dev/nvidia-uvm", "dev/dri/card1", "dev/dri/renderD129",
                           "dev/dri/card2"}) {
    root_.write(name, "");
  }
  const std::string drm = "sys/bus/pci/devices/0000:18:00.0/drm/";
  for (const char* name : {"card1", "renderD129", "card7", "controlD64"}) root_.folder(drm + name);
  root_.write("proc/driver/nvidia-caps/mig-minors",
              "gpu3/gi1/access 30\ngpu3/gi1/ci0/access 31\ngpu0/gi2/access 99\n");
  model::GpuInventory inventory = one_gpu();
  inventory.gpus[0].mig_enabled = true;
  inventory.gpus[0].mig = {{.uuid = "MIG-1", .gpu_instance = 1},
                           {.uuid = "MIG-2", .gpu_instance = 2}};
  const DriverFiles found = find(inventory);
  EXPECT_EQ(found.control_nodes, (std::vector<std::string>{"/dev/nvidia-uvm", "/dev/nvidiactl"}));
  EXPECT_EQ(found.dev_root, root_.path());
  ASSERT_EQ(found.gpus.size(), 1U);
  EXPECT_EQ(pairs(found.gpus[0].nodes), (Pairs{{"/dev/nvidia3", "/dev/nvidia3"},
                                               {"/dev/dri/card1", "/dev/dri/card1"},
                                               {"/dev/dri/renderD129", "/dev/dri/renderD129"}}));
  const std::vector<std::vector<std::string>> caps = {
      {"/dev/nvidia-caps/nvidia-cap30", "/dev/nvidia-caps/nvidia-cap31"}, {}};
  EXPECT_EQ(found.gpus[0].mig_caps, caps);
}

TEST_F(DriverFilesTest, HostPathsAreTheHostsWhereverTheyAreSeen) {
  root_.write("driver/usr/lib64/libcuda.so.580.159.04", "x");
  root_.write("dev-root/dev/nvidiactl", "");
  const DriverFiles found =
      find_driver_files("/run/nvidia/driver", "/", one_gpu(), false,
                        {.driver_root = root_.at("driver"), .dev_root = root_.at("dev-root")});
  const std::vector<DriverFiles::Mount> libraries = {
      {"/run/nvidia/driver/usr/lib64/libcuda.so.580.159.04", "/usr/lib64/libcuda.so.580.159.04"}};
  EXPECT_EQ(found.libraries, libraries);
  EXPECT_EQ(found.control_nodes, std::vector<std::string>{"/dev/nvidiactl"});
  EXPECT_EQ(found.dev_root, "");
  const std::vector<DriverFiles::Mount> nodes = {{"/dev/nvidia3", "/dev/nvidia3"}};
  EXPECT_EQ(found.gpus[0].nodes, nodes);
}

TEST_F(DriverFilesTest, SimulatedGpusStandOnDevNull) {
  root_.write("usr/lib64/libcuda.so.580.159.04", "x");
  model::GpuInventory inventory = one_gpu();
  inventory.gpus[0].mig = {{.uuid = "MIG-1"}};
  const DriverFiles found = find_driver_files(root_.path(), "", inventory, true);
  DriverFiles want;
  want.gpus = {{{{"/dev/null", "/dev/nvidia3"}}, {{}}}};
  want.extras = found.extras;
  EXPECT_EQ(found, want);
  ASSERT_EQ(found.extras.size(), 4U);
  for (const DriverFiles::Extra& extra : found.extras) {
    for (const DriverFiles::Mount& node : extra.nodes) EXPECT_EQ(node.host, "/dev/null");
    EXPECT_FALSE(extra.nodes.empty() || !extra.files.empty()) << extra.what;
  }
}

TEST_F(DriverFilesTest, ExtrasAreThoseWhoseNodesExist) {
  EXPECT_TRUE(find(one_gpu()).extras.empty());
  for (const char* name :
       {"dev/nvidia-fs0", "dev/nvidia-fs1", "dev/gdrdrv", "dev/infiniband/uverbs1",
        "dev/infiniband/uverbs0", "dev/infiniband/rdma_cm", "dev/infiniband/umad0",
        "dev/nvidia-fs$(rm)", "dev/nvidia-caps-imex-channels/channel0",
        "dev/nvidia-caps-imex-channels/channel1", "etc/cufile.json"}) {
    root_.write(name, "");
  }
  root_.folder("run/udev");
  const DriverFiles found = find(one_gpu());
  std::map<std::string, std::pair<Pairs, Pairs>> extras;
  for (const DriverFiles::Extra& extra : found.extras) {
    extras[extra.what + "=" + extra.device] = {pairs(extra.nodes), pairs(extra.files)};
  }
  const auto same = [](std::initializer_list<std::string> paths) {
    Pairs out;
    for (const std::string& path : paths) out.emplace_back(path, path);
    return out;
  };
  const std::map<std::string, std::pair<Pairs, Pairs>> want = {
      {"gdrcopy=all", {same({"/dev/gdrdrv"}), {}}},
      {"gds=all",
       {same({"/dev/nvidia-fs0", "/dev/nvidia-fs1"}), same({"/etc/cufile.json", "/run/udev"})}},
      {"imex-channel=0", {same({"/dev/nvidia-caps-imex-channels/channel0"}), {}}},
      {"mofed=all",
       {same({"/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs0", "/dev/infiniband/uverbs1"}),
        {}}},
  };
  EXPECT_EQ(extras, want);
}

}  // namespace
}  // namespace berth::host
