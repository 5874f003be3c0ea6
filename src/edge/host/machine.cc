#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "edge/host/host.h"
#include "edge/host/host_text.h"
#include "edge/host/paths.h"

namespace berth::host {
namespace {

constexpr std::size_t kMostOfAttribute = 65'536;

std::string attribute(const std::string& path) {
  auto text = read_text(path, kMostOfAttribute);
  return text.ok() ? std::string(trimmed(*text)) : std::string();
}

std::uint32_t id_of(const std::string& path, std::uint32_t most) {
  const auto number = number_of(attribute(path));
  return number && *number >= 0 && *number <= most ? static_cast<std::uint32_t>(*number) : 0;
}

int numa_of(const std::string& device) {
  const auto number = number_of(attribute(device + "/numa_node"));
  return number && *number >= 0 && *number <= 4'095 ? static_cast<int>(*number) : -1;
}

std::vector<model::PciDevice> pci_devices(const std::string& root) {
  std::vector<model::PciDevice> found;
  const std::string folder = below(root, "/sys/bus/pci/devices");
  for (const std::string& name : names_in(folder)) {
    const std::string device = folder + "/" + name;
    const std::string bus_id = bus_id_of(name);
    if (bus_id.empty() || attribute(device + "/vendor").empty()) continue;
    const auto word = [&](const char* file) {
      return static_cast<std::uint16_t>(id_of(device + file, 0xFFFF));
    };
    found.push_back({.bus_id = bus_id,
                     .class_code = id_of(device + "/class", 0xFFFFFF),
                     .vendor = word("/vendor"),
                     .device = word("/device"),
                     .subsystem_vendor = word("/subsystem_vendor"),
                     .subsystem_device = word("/subsystem_device"),
                     .numa = numa_of(device),
                     .sriov = word("/sriov_totalvfs") > 0});
  }
  return found;
}

// Software RDMA (rxe, siw) has no device of its own and is left out.
std::vector<model::NicDevice> rdma_nics(const std::string& root) {
  std::vector<model::NicDevice> found;
  const std::string folder = below(root, "/sys/class/infiniband");
  for (const std::string& name : names_in(folder)) {
    const std::string nic = folder + "/" + name;
    std::error_code failed;
    const auto device = std::filesystem::canonical(nic + "/device", failed);
    if (failed) continue;
    std::string bus_id = bus_id_of(device.filename().string());
    if (bus_id.empty()) continue;
    std::string layer;
    for (const std::string& port : names_in(nic + "/ports")) {
      if (layer.empty()) layer = attribute(nic + "/ports/" + port + "/link_layer");
    }
    found.push_back({.name = name,
                     .pci_bus_id = std::move(bus_id),
                     .link_layer = std::move(layer),
                     .numa = numa_of(device.string())});
  }
  return found;
}

std::map<std::string, std::string> distribution(const std::string& root) {
  for (const char* path : {"/etc/os-release", "/usr/lib/os-release"}) {
    const auto file = resolve_below(root, path);
    if (!file) continue;
    if (const auto text = read_text(below(root, *file), kMostOfAttribute); text.ok()) {
      return os_release_of(*text);
    }
  }
  return {};
}

// The upstream ports of the switches above a device, the nearest first. From the processor down a
// path alternates: root port, then upstream and downstream port of each switch, then the device.
std::vector<std::string> switches_above(const std::string& root, const std::string& bus_id) {
  std::error_code failed;
  const auto path =
      std::filesystem::canonical(below(root, "/sys/bus/pci/devices/" + bus_id), failed);
  std::vector<std::string> bridges;
  if (failed) return bridges;
  for (const auto& part : path) {
    std::string name = bus_id_of(part.string());
    if (name.empty()) {
      bridges.clear();  // "pci0000:15": a bus of its own begins
    } else {
      bridges.push_back(std::move(name));
    }
  }
  if (!bridges.empty()) bridges.pop_back();  // the device itself
  std::vector<std::string> upstream;
  for (std::size_t i = 1; i < bridges.size(); i += 2) {
    upstream.insert(upstream.begin(), bridges[i]);
  }
  return upstream;
}

struct OnBus {
  std::string bus_id;
  std::vector<std::string> switches;  // nearest first
  int* numa;
  int* pcie_switch;
};

using CardsBelow = std::map<std::string, std::set<std::string>>;  // by upstream port

// The functions of one card are together anyway, and some cards have a switch inside.
std::string card_of(const std::string& bus_id) { return bus_id.substr(0, bus_id.find('.')); }

// The nearest switch that another card of these is below as well, else the nearest.
std::string switch_of(const OnBus& device, const CardsBelow& cards_below) {
  for (const std::string& port : device.switches) {
    if (cards_below.at(port).size() > 1) return port;
  }
  return device.switches.empty() ? std::string() : device.switches.front();
}

}  // namespace

model::HostFacts read_host(const std::string& root) {
  model::HostFacts facts;
  facts.machine = attribute(below(root, "/sys/class/dmi/id/product_name"));
  facts.kernel = attribute(below(root, "/proc/sys/kernel/osrelease"));
  facts.os_release = distribution(root);
  facts.pci = pci_devices(root);
  facts.nics = rdma_nics(root);
  return facts;
}

void place_on_bus(const std::string& root, model::GpuInventory& inventory,
                  model::HostFacts& facts) {
  std::vector<OnBus> devices;
  const auto add = [&](const std::string& bus_id, int& numa, int& pcie_switch) {
    std::error_code failed;
    const std::string id = bus_id_of(bus_id);
    if (id.empty() || !std::filesystem::exists(below(root, "/sys/bus/pci/devices/" + id), failed)) {
      return;
    }
    devices.push_back({id, switches_above(root, id), &numa, &pcie_switch});
  };
  for (auto& gpu : inventory.gpus) add(gpu.pci_bus_id, gpu.numa, gpu.pcie_switch);
  for (auto& nic : facts.nics) add(nic.pci_bus_id, nic.numa, nic.pcie_switch);

  CardsBelow cards_below;
  for (const OnBus& device : devices) {
    for (const std::string& port : device.switches) {
      cards_below[port].insert(card_of(device.bus_id));
    }
  }
  std::map<std::string, std::string> lowest;  // device, by switch
  for (const OnBus& device : devices) {
    const std::string port = switch_of(device, cards_below);
    if (port.empty()) continue;
    const auto [at, added] = lowest.emplace(port, device.bus_id);
    if (!added) at->second = std::min(at->second, device.bus_id);
  }
  std::vector<std::pair<std::string, std::string>> order;  // lowest device, switch
  for (const auto& [port, device] : lowest) order.emplace_back(device, port);
  std::sort(order.begin(), order.end());
  for (const OnBus& device : devices) {
    *device.numa = numa_of(below(root, "/sys/bus/pci/devices/" + device.bus_id));
    const std::string port = switch_of(device, cards_below);
    const auto at = std::find_if(order.begin(), order.end(),
                                 [&](const auto& entry) { return entry.second == port; });
    *device.pcie_switch = at == order.end() ? -1 : static_cast<int>(at - order.begin());
  }
}

std::vector<model::ContainerPlace> containers_of(const std::string& root, int pid) {
  const auto text =
      read_text(below(root, "/proc/" + std::to_string(pid) + "/cgroup"), kMostOfAttribute);
  return text.ok() ? containers_of_cgroups(*text) : std::vector<model::ContainerPlace>();
}

}  // namespace berth::host
