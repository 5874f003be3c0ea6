#include "embedded/nodes/node_objects.h"

#include "embedded/workloads/read.h"
#include "text/json_writer.h"
#include "text/quantity.h"

namespace berth::sim {

namespace {

using text::JsonWriter;

constexpr const char* kDriver = "580.159.04";
constexpr const char* kCuda = "13.0";
constexpr const char* kKubelet = "v1.37.1";

struct Generation {
  std::string_view part;  // of the product name
  const char* family;
  const char *major, *minor;
};
constexpr Generation kGenerations[] = {
    {"GB300", "blackwell", "10", "3"},
    {"B300", "blackwell", "10", "3"},
    {"GB200", "blackwell", "10", "0"},
    {"B200", "blackwell", "10", "0"},
    {"RTX-PRO-6000", "blackwell", "12", "0"},
    {"GH200", "hopper", "9", "0"},
    {"H200", "hopper", "9", "0"},
    {"H100", "hopper", "9", "0"},
    {"H800", "hopper", "9", "0"},
    {"H20", "hopper", "9", "0"},
    {"A100", "ampere", "8", "0"},
    {"A800", "ampere", "8", "0"},
    {"A30", "ampere", "8", "0"},
    {"RTX-6000-Ada", "ada-lovelace", "8", "9"},
    {"L40", "ada-lovelace", "8", "9"},
    {"L4", "ada-lovelace", "8", "9"},
    {"A10", "ampere", "8", "6"},
    {"A16", "ampere", "8", "6"},
    {"A40", "ampere", "8", "6"},
    {"A6000", "ampere", "8", "6"},
    {"NVIDIA-A2", "ampere", "8", "6"},
    {"T4", "turing", "7", "5"},
    {"V100", "volta", "7", "0"},
    {"P100", "pascal", "6", "0"},
    {"P4", "pascal", "6", "1"},
};

bool arm_machine(std::string_view product) {
  return product.find("-GB") != std::string_view::npos ||
         product.find("-GH") != std::string_view::npos;
}

void put_gpu_labels(const Pool& pool, std::map<std::string, std::string>& out) {
  const auto put = [&out](std::string_view key, std::string value) {
    out.emplace("nvidia.com/" + std::string(key), std::move(value));
  };
  put("gpu.present", "true");
  put("gpu.product", pool.shares > 1 ? pool.model + "-SHARED" : pool.model);
  put("gpu.count", std::to_string(pool.gpus));
  put("gpu.memory", std::to_string(pool.gpu_memory_mib));
  put("gpu.replicas", std::to_string(pool.mig.empty() ? pool.shares : 0));
  put("gpu.sharing-strategy", pool.shares > 1 ? "time-slicing" : "none");
  put("gpu.mode", "compute");
  put("gpu.machine", "berth-simulated");
  put("mig.capable", pool.mig.empty() ? "false" : "true");
  if (!pool.mig.empty()) put("mig.strategy", "mixed");
  put("cuda.driver-version.full", kDriver);
  put("cuda.runtime-version.full", kCuda);
  for (const Generation& g : kGenerations) {
    if (pool.model.find(g.part) == std::string::npos) continue;
    put("gpu.family", g.family);
    put("gpu.compute.major", g.major);
    put("gpu.compute.minor", g.minor);
    break;
  }
}

void put_amounts(JsonWriter& out, const Machine& machine, bool allocatable) {
  const model::NodeInfo& info = machine.info();
  const auto bytes = [](std::int64_t n) {
    return text::Quantity::from_units(n, text::Format::kBinarySI).to_string();
  };
  out.object([&] {
    out.field("cpu", text::Quantity::from_milli(info.cpu).to_string());
    out.field("memory", bytes(info.memory));
    out.field("ephemeral-storage", bytes(info.ephemeral));
    out.field("pods", std::to_string(info.pods));
    if (const auto gpus = machine.advertised()) {
      out.field(gpus->resource, std::to_string(allocatable ? gpus->allocatable : gpus->capacity));
      // With slices of one profile no whole device is left.
      if (gpus->resource != "nvidia.com/gpu") out.field("nvidia.com/gpu", "0");
    }
  });
}

void put_node_condition(JsonWriter& out, const NodeView& view, std::string_view type,
                        std::string_view status, std::string_view reason,
                        std::string_view message) {
  out.object([&] {
    out.field("type", type);
    out.field("status", status);
    out.field("lastHeartbeatTime", seconds_text(view.now));
    out.field("lastTransitionTime", seconds_text(view.ready_since));
    out.field("reason", reason);
    out.field("message", message);
  });
}

void put_node_conditions(JsonWriter& out, const NodeView& view) {
  out.array([&] {
    put_node_condition(out, view, "MemoryPressure", "False", "KubeletHasSufficientMemory",
                       "kubelet has sufficient memory available");
    put_node_condition(out, view, "DiskPressure", "False", "KubeletHasNoDiskPressure",
                       "kubelet has no disk pressure");
    put_node_condition(out, view, "PIDPressure", "False", "KubeletHasSufficientPID",
                       "kubelet has sufficient PID available");
    if (view.ready) {
      put_node_condition(out, view, "Ready", "True", "KubeletReady",
                         "kubelet is posting ready status");
    } else {
      put_node_condition(out, view, "Ready", "False", "KubeletNotReady",
                         "container runtime is down");
    }
  });
}

void put_node_info(JsonWriter& out, const NodeView& view) {
  const model::NodeInfo& info = view.machine->info();
  out.object([&] {
    out.field("architecture", arm_machine(info.gpu_model) ? "arm64" : "amd64");
    out.field("bootID", info.name + "-boot-" + std::to_string(view.boots));
    out.field("containerRuntimeVersion", "sim://1.0");
    out.field("kernelVersion", "6.1.0-sim");
    out.field("kubeProxyVersion", "");
    out.field("kubeletVersion", kKubelet);
    out.field("machineID", info.name);
    out.field("operatingSystem", "linux");
    out.field("osImage", "berth simulated node");
    out.field("systemUUID", info.name);
  });
}

void put_node_status(JsonWriter& out, const NodeView& view) {
  out.object([&] {
    out.key("capacity");
    put_amounts(out, *view.machine, false);
    out.key("allocatable");
    put_amounts(out, *view.machine, true);
    out.key("conditions");
    put_node_conditions(out, view);
    out.array("addresses", [&] {
      for (const auto& [type, address] :
           {std::pair<const char*, std::string>{"InternalIP", node_ip(view.number)},
            {"Hostname", view.machine->name()}}) {
        out.object([&] {
          out.field("type", type);
          out.field("address", address);
        });
      }
    });
    out.key("nodeInfo");
    put_node_info(out, view);
  });
}

void put_node_owner(JsonWriter& out, const std::string& node, const std::string& uid) {
  out.array("ownerReferences", [&] {
    out.object([&] {
      out.field("apiVersion", "v1");
      out.field("kind", "Node");
      out.field("name", node);
      out.field("uid", uid);
    });
  });
}

std::string pod_range(int number) {
  return "10." + std::to_string(number / 256) + '.' + std::to_string(number % 256) + '.';
}

}  // namespace

std::string node_ip(int number) {
  return "10." + std::to_string(128 + number / 62500) + '.' + std::to_string(number / 250 % 250) +
         '.' + std::to_string(number % 250 + 1);
}

std::string pod_ip(int number, int slot) {
  return slot < 0 ? std::string() : pod_range(number) + std::to_string(slot + 2);
}

std::map<std::string, std::string> node_labels(const Pool& pool, int number_in_pool) {
  std::map<std::string, std::string> out = pool.labels;  // what the file says wins
  out.emplace("kubernetes.io/hostname", pool.node_name(number_in_pool));
  out.emplace("kubernetes.io/os", "linux");
  out.emplace("kubernetes.io/arch", arm_machine(pool.model) ? "arm64" : "amd64");
  out.emplace("topology.kubernetes.io/rack", pool.rack_of(number_in_pool));
  if (!pool.block.empty()) out.emplace("topology.kubernetes.io/block", pool.block);
  if (!pool.zone.empty()) out.emplace("topology.kubernetes.io/zone", pool.zone);
  if (pool.gpus > 0) put_gpu_labels(pool, out);
  return out;
}

std::string node_object(const Pool& pool, int number_in_pool, const NodeView& view) {
  JsonWriter out;
  out.object([&] {
    out.field("apiVersion", "v1");
    out.field("kind", "Node");
    out.object("metadata", [&] {
      out.field("name", view.machine->name());
      out.object("labels", [&] {
        for (const auto& [key, value] : node_labels(pool, number_in_pool)) out.field(key, value);
      });
    });
    out.object("spec", [&] {
      const std::string range = pod_range(view.number) + "0/24";
      out.field("podCIDR", range);
      out.array("podCIDRs", [&] { out.value(range); });
      out.field("providerID", "sim://" + view.machine->name());
      if (!pool.taints.empty()) {
        out.array("taints", [&] {
          for (const Taint& taint : pool.taints) {
            out.object([&] {
              out.field("key", taint.key);
              if (!taint.value.empty()) out.field("value", taint.value);
              out.field("effect", taint.effect);
            });
          }
        });
      }
    });
    out.key("status");
    put_node_status(out, view);
  });
  return std::move(out).take();
}

std::string node_status_patch(const NodeView& view) {
  JsonWriter out;
  out.object([&] {
    out.key("status");
    put_node_status(out, view);
  });
  return std::move(out).take();
}

std::string node_labels_patch(const std::map<std::string, std::string>& labels) {
  JsonWriter out;
  out.object([&] {
    out.object("metadata", [&] {
      out.object("labels", [&] {
        for (const auto& [key, value] : labels) out.field(key, value);
      });
    });
  });
  return std::move(out).take();
}

std::string lease_object(const std::string& node, const std::string& node_uid, std::int64_t now) {
  JsonWriter out;
  out.object([&] {
    out.field("apiVersion", "coordination.k8s.io/v1");
    out.field("kind", "Lease");
    out.object("metadata", [&] {
      out.field("name", node);
      out.field("namespace", "kube-node-lease");
      put_node_owner(out, node, node_uid);
    });
    out.object("spec", [&] {
      out.field("holderIdentity", node);
      out.field("leaseDurationSeconds", 40);
      out.field("renewTime", micro_text(now));
    });
  });
  return std::move(out).take();
}

std::string lease_patch(const std::string& node, std::int64_t now) {
  JsonWriter out;
  out.object([&] {
    out.object("spec", [&] {
      out.field("holderIdentity", node);
      out.field("renewTime", micro_text(now));
    });
  });
  return std::move(out).take();
}

std::string gpu_node_object(const std::string& node, const std::string& node_uid) {
  return kinds::bare_gpu_node(node, node_uid);
}

std::string gpu_node_status_patch(const Machine& machine,
                                  const std::vector<std::vector<std::string>>& holders) {
  kinds::GpuNode node;
  node.name = machine.name();
  node.gpus = machine.published();
  for (std::size_t i = 0; i < node.gpus.size() && i < holders.size(); ++i) {
    node.gpus[i].holders = holders[i];
  }
  node.driver_version = kDriver;
  node.cuda_version = kCuda;
  node.numa_policy = machine.info().numa_policy;
  node.numa_scope = machine.info().numa_scope;
  return kinds::status_patch(node);
}

}  // namespace berth::sim
