#include <gtest/gtest.h>

#include "edge/host/host.h"
#include "edge/host/host_for_test.h"

namespace berth::host {
namespace {

// sysfs as the kernel shapes it: devices in a tree of buses, and links to them by id.
class Bus {
 public:
  explicit Bus(const TestFolder& root) : root_(root) {}

  // path: "pci0000:15/0000:15:01.0/0000:18:00.0"
  void add(const std::string& path, const std::map<std::string, std::string>& attributes) const {
    const std::string id = path.substr(path.rfind('/') + 1);
    root_.folder("sys/devices/" + path);
    for (const auto& [name, text] : attributes) {
      root_.write("sys/devices/" + path + "/" + name, text + "\n");
    }
    root_.link("sys/bus/pci/devices/" + id, "../../../devices/" + path);
  }
  void add_nic(const std::string& name, const std::string& path, const std::string& layer) const {
    root_.write("sys/devices/" + path + "/infiniband/" + name + "/ports/1/link_layer",
                layer + "\n");
    root_.link("sys/devices/" + path + "/infiniband/" + name + "/device", "../../");
    root_.link("sys/class/infiniband/" + name, "../../devices/" + path + "/infiniband/" + name);
  }

 private:
  const TestFolder& root_;
};

std::map<std::string, std::string> gpu_attributes(const std::string& numa) {
  return {{"class", "0x030200"},          {"vendor", "0x10de"},           {"device", "0x2335"},
          {"subsystem_vendor", "0x10de"}, {"subsystem_device", "0x18be"}, {"numa_node", numa},
          {"sriov_totalvfs", "16"}};
}

TEST(Machine, ReadsWhatIsThere) {
  const TestFolder root;
  const Bus bus(root);
  root.write("sys/class/dmi/id/product_name", "DGX H200 \n");
  root.write("proc/sys/kernel/osrelease", "6.1.0-13-amd64\n");
  root.write("usr/lib/os-release", "ID=debian\nVERSION_ID=\"12\"\n");
  root.link("etc/os-release", "/usr/lib/os-release");
  bus.add("pci0000:15/0000:18:00.0", gpu_attributes("1"));
  bus.add("pci0000:15/0000:19:00.0", {{"class", "0x020700"},
                                      {"vendor", "0x15b3"},
                                      {"device", "0x1021"},
                                      {"numa_node", "-1"},
                                      {"sriov_totalvfs", "0"}});
  bus.add("pci0000:15/0000:1a:00.0", {{"vendor", "rubbish"}, {"class", "0x999999999"}});
  bus.add("pci0000:15/0000:1b:00.0", {{"class", "0x060400"}});
  root.folder("sys/bus/pci/devices/not-a-device");
  bus.add_nic("mlx5_0", "pci0000:15/0000:19:00.0", "InfiniBand");
  root.folder("sys/class/infiniband/rxe0/ports/1");

  const model::HostFacts facts = read_host(root.path());
  EXPECT_EQ(facts.machine, "DGX H200");
  EXPECT_EQ(facts.kernel, "6.1.0-13-amd64");
  EXPECT_EQ(facts.os_release,
            (std::map<std::string, std::string>{{"ID", "debian"}, {"VERSION_ID", "12"}}));
  const std::vector<model::PciDevice> pci = {
      {"0000:18:00.0", 0x030200, 0x10de, 0x2335, 0x10de, 0x18be, 1, true},
      {"0000:19:00.0", 0x020700, 0x15b3, 0x1021, 0, 0, -1, false},
      {"0000:1a:00.0", 0, 0, 0, 0, 0, -1, false}};
  EXPECT_EQ(facts.pci, pci);
  const std::vector<model::NicDevice> nics = {
      {.name = "mlx5_0", .pci_bus_id = "0000:19:00.0", .link_layer = "InfiniBand"}};
  EXPECT_EQ(facts.nics, nics);
}

TEST(Machine, AMachineWithoutAnythingHasNoFacts) {
  const TestFolder root;
  EXPECT_EQ(read_host(root.path()), model::HostFacts());
}

TEST(Machine, ReadsTheOneThatRunsThis) { EXPECT_FALSE(read_host("/").kernel.empty()); }

model::GpuDevice gpu_at(const std::string& bus_id) {
  model::GpuDevice gpu;
  gpu.pci_bus_id = bus_id;
  return gpu;
}

TEST(Machine, PlacesDevicesOnTheBus) {
  const TestFolder root;
  const Bus bus(root);
  const auto device = [&](const std::string& path, const std::string& numa) {
    bus.add(path, {{"vendor", "0x10de"}, {"numa_node", numa}});
  };
  // Two GPUs and a NIC below one switch; a GPU and a NIC whose switches hang below another one; a
  // NIC with a switch inside and two functions; one GPU at the processor; one alone below a switch.
  device("pci0000:a0/0000:a0:01.0/0000:a1:00.0/0000:a2:00.0/0000:a3:00.0", "1");
  device("pci0000:a0/0000:a0:01.0/0000:a1:00.0/0000:a2:01.0/0000:a4:00.0", "1");
  device("pci0000:a0/0000:a0:01.0/0000:a1:00.0/0000:a2:02.0/0000:a5:00.0", "1");
  const std::string second = "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:0";
  device(second + "0.0/0000:13:00.0/0000:14:00.0/0000:15:00.0", "0");
  device(second + "1.0/0000:23:00.0/0000:24:00.0/0000:25:00.0", "0");
  device(second + "1.0/0000:23:00.0/0000:24:00.0/0000:25:00.1", "0");
  device("pci0000:30/0000:30:01.0/0000:31:00.0", "-1");
  device("pci0000:40/0000:40:01.0/0000:41:00.0/0000:42:00.0/0000:43:00.0", "1");

  model::GpuInventory inventory;
  for (const char* id : {"0000:a3:00.0", "0000:a4:00.0", "0000:15:00.0", "0000:31:00.0",
                         "0000:43:00.0", "0000:77:00.0"}) {
    inventory.gpus.push_back(gpu_at(id));
  }
  inventory.gpus.back().numa = 3;
  inventory.gpus.back().pcie_switch = 9;
  model::HostFacts facts;
  for (const char* id : {"0000:a5:00.0", "0000:25:00.0", "0000:25:00.1"}) {
    facts.nics.push_back({.name = id, .pci_bus_id = id});
  }
  place_on_bus(root.path(), inventory, facts);

  std::vector<std::pair<int, int>> found;
  for (const auto& gpu : inventory.gpus) found.emplace_back(gpu.numa, gpu.pcie_switch);
  for (const auto& nic : facts.nics) found.emplace_back(nic.numa, nic.pcie_switch);
  const std::vector<std::pair<int, int>> want = {{1, 2}, {1, 2}, {0, 0}, {-1, -1},
                                                 {1, 1}, {3, 9},  // not in sysfs: as it was
                                                 {1, 2}, {0, 0}, {0, 0}};
  EXPECT_EQ(found, want);
}

TEST(Machine, ABusInsideABusBeginsAgain) {  // as behind a volume management device
  const TestFolder root;
  const Bus bus(root);
  bus.add("pci0000:d6/0000:d6:05.5/pci10000:00/10000:00:02.0/10000:01:00.0", {{"vendor", "0x1"}});
  bus.add("pci0000:d6/0000:d6:05.5/pci10000:00/10000:00:03.0/10000:02:00.0", {{"vendor", "0x1"}});
  model::GpuInventory inventory;
  inventory.gpus = {gpu_at("10000:01:00.0"), gpu_at("10000:02:00.0")};
  model::HostFacts facts;
  place_on_bus(root.path(), inventory, facts);
  EXPECT_EQ(inventory.gpus[0].pcie_switch, -1);
  EXPECT_EQ(inventory.gpus[1].pcie_switch, -1);
}

TEST(Machine, FindsTheContainerOfAProcess) {
  const TestFolder root;
  const std::string id(64, 'c');
  root.write("proc/17/cgroup", "0::/kubepods/pod1b2c3d4e-0001-4002-8003-aabbccddeeff/" + id + "\n");
  root.write("proc/18/cgroup", "0::/init.scope\n");
  const auto found = containers_of(root.path(), 17);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].pod_uid, "1b2c3d4e-0001-4002-8003-aabbccddeeff");
  EXPECT_EQ(found[0].container_id, id);
  EXPECT_TRUE(containers_of(root.path(), 18).empty());
  EXPECT_TRUE(containers_of(root.path(), 19).empty());
}

// Files as machines have them, in full: /proc/PID/cgroup of a container's process.
TEST(Machine, FindsTheContainerOnEveryKindOfMachine) {
  const std::string id = "7d1e0c9b8a7f6e5d4c3b2a190817161514131211100f0e0d0c0b0a0908070605";
  const std::string uid = "1b2c3d4e-0001-4002-8003-aabbccddeeff";
  const std::string scored = "1b2c3d4e_0001_4002_8003_aabbccddeeff";
  const auto on_all = [](const std::string& path) {  // v1: the same path in every hierarchy
    std::string out;
    int number = 12;
    for (const char* controllers :
         {"pids", "hugetlb", "net_cls,net_prio", "perf_event", "memory", "cpu,cpuacct", "devices",
          "blkio", "freezer", "cpuset", "rdma", "name=systemd"}) {
      out += std::to_string(number--) + ':' + controllers + ':' + path + '\n';
    }
    return out;
  };
  const std::string slice = "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" +
                            scored + ".slice/cri-containerd-" + id + ".scope";
  const std::map<int, std::string> machines = {
      {1, on_all("/kubepods/besteffort/pod" + uid + "/" + id)},    // v1, cgroupfs
      {2, on_all(slice)},                                          // v1, systemd
      {3, on_all(slice) + "0::" + slice + "\n"},                   // hybrid
      {4, "0::/kubepods/besteffort/pod" + uid + "/" + id + "\n"},  // v2, cgroupfs
      {5, "0::" + slice + "\n"},                                   // v2, systemd
      {6, "9:name=systemd:/\n8:pids:/berth/kubepods/besteffort/pod" + uid + "/" + id +
              "\n4:memory:/berth/kubepods/besteffort/pod" + uid + "/" + id + "\n0::/\n"},
  };
  const TestFolder root;
  for (const auto& [pid, text] : machines) {
    root.write("proc/" + std::to_string(pid) + "/cgroup", text);
    const auto found = containers_of(root.path(), pid);
    ASSERT_EQ(found.size(), 1U) << text;
    EXPECT_EQ(found[0], (model::ContainerPlace{uid, id})) << text;
  }
}

}  // namespace
}  // namespace berth::host
