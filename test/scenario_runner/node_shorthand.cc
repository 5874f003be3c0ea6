// "4 nodes n: 8 x H100, rack r1, cpu 96" as Node and, where a detail needs it, GpuNode manifests.
#include <map>
#include <optional>

#include "kinds/gpu_node.h"
#include "kinds/products.h"
#include "line_words.h"
#include "shorthand.h"
#include "text/json_writer.h"

namespace berth::scenario {

namespace {

struct NodeTaint {
  std::string key, value, effect;
};

struct NodeWords {
  int gpus = 0;
  std::string product;
  std::map<std::string, std::string> labels,
      amounts = {{"cpu", "96"}, {"memory", "1Ti"}, {"ephemeral-storage", "1Ti"}, {"pods", "110"}};
  std::vector<NodeTaint> taints;
  bool cordoned = false, ready = true;
  int shares = 1;
  bool renamed = false;  // they go by nvidia.com/gpu.shared
  // What only a GpuNode can say.
  bool agent = false;
  std::vector<int> unhealthy, reserved;
  std::vector<std::vector<int>> cliques, numa, switches;
  std::string numa_policy, numa_scope;
  struct Mig {
    std::string resource;
    int count = 0;
    std::vector<int> gpus;
  };
  std::vector<Mig> mig;
};

Error bad_item(std::string_view item, std::string_view want) {
  return invalid("found \"" + std::string(item) + "\", want " + std::string(want));
}

Result<NodeTaint> read_node_taint(std::string_view text) {
  NodeTaint taint;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad_item(text, "key=value:Effect or key:Effect");
  taint.effect = text.substr(colon + 1);
  text = text.substr(0, colon);
  const std::size_t equals = text.find('=');
  taint.key = text.substr(0, equals);
  if (equals != std::string_view::npos) taint.value = text.substr(equals + 1);
  return taint;
}

Status read_groups(const std::vector<std::string>& words, std::size_t from,
                   std::vector<std::vector<int>>& out) {
  for (std::size_t i = from; i < words.size(); ++i) {
    const auto range = ranges_of(words[i]);
    if (!range) return bad_item(words[i], "GPU indices such as 0-3");
    out.push_back(*range);
  }
  return {};
}

Status read_mig(const std::vector<std::string>& w, NodeWords& out) {
  // mig 1g.10gb x 7 on 0,1
  if (w.size() != 6 || w[2] != "x" || w[4] != "on" || !number_of(w[3]) || !ranges_of(w[5])) {
    return invalid("found a mig item, want \"mig 1g.10gb x 7 on 0,1\"");
  }
  out.mig.push_back({"nvidia.com/mig-" + w[1], *number_of(w[3]), *ranges_of(w[5])});
  out.agent = true;
  return {};
}

Status read_node_gpu_item(const std::string& item, const std::vector<std::string>& w,
                          NodeWords& out, bool& known) {
  known = true;
  if (item == "no GPUs") {
    out.gpus = 0;
  } else if (w.size() == 3 && w[1] == "x" && number_of(w[0])) {
    out.gpus = *number_of(w[0]);
    out.product = product_of(w[2]);
  } else if ((w[0] == "unhealthy" || w[0] == "reserved") && w.size() == 2) {
    const auto range = ranges_of(w[1]);
    if (!range) return bad_item(item, "GPU indices such as 0-3");
    (w[0] == "unhealthy" ? out.unhealthy : out.reserved) = *range;
    out.agent = true;
  } else if (w[0] == "numa" && w.size() == 3 && w[1] == "policy") {
    out.numa_policy = w[2];
    out.agent = true;
  } else if (w[0] == "numa" && w.size() == 3 && w[1] == "scope") {
    out.numa_scope = w[2];
    out.agent = true;
  } else if (w[0] == "numa" || w[0] == "cliques" || w[0] == "switches") {
    out.agent = true;
    return read_groups(w, 1,
                       w[0] == "numa"      ? out.numa
                       : w[0] == "cliques" ? out.cliques
                                           : out.switches);
  } else if (w.size() == 4 && w[1] == "shares" && number_of(w[0])) {  // 4 shares a GPU
    out.shares = *number_of(w[0]);
  } else if (w.size() == 5 && w[1] == "renamed" && number_of(w[0])) {  // 4 renamed shares a GPU
    out.shares = *number_of(w[0]);
    out.renamed = true;
  } else if (w[0] == "mig") {
    return read_mig(w, out);
  } else {
    known = false;
  }
  return {};
}

Status read_node_item(const std::string& item, NodeWords& out) {
  const std::vector<std::string> w = words_of(item);
  if (w.empty()) return invalid("found an empty item between commas");
  bool known = false;
  BERTH_CHECK(read_node_gpu_item(item, w, out, known));
  if (known) return {};
  if (w.size() == 2 && (w[0] == "rack" || w[0] == "zone" || w[0] == "block" || w[0] == "region")) {
    out.labels[topology_label(w[0])] = w[1];
  } else if (w.size() == 2 && (w[0] == "cpu" || w[0] == "memory")) {
    out.amounts[w[0]] = w[1];
  } else if (w.size() == 2 && w[0] == "storage") {
    out.amounts["ephemeral-storage"] = w[1];
  } else if (w.size() == 3 && w[0] == "max" && w[1] == "pods") {
    out.amounts["pods"] = w[2];
  } else if (w.size() == 3 && w[0] == "resource") {
    out.amounts[w[1]] = w[2];
  } else if (w.size() == 2 && w[0] == "label" && w[1].find('=') != std::string::npos) {
    const std::size_t equals = w[1].find('=');
    out.labels[w[1].substr(0, equals)] = w[1].substr(equals + 1);
  } else if (w.size() == 2 && w[0] == "taint") {
    BERTH_TRY(NodeTaint taint, read_node_taint(w[1]));
    out.taints.push_back(std::move(taint));
  } else if (item == "cordoned") {
    out.cordoned = true;
  } else if (item == "not ready") {
    out.ready = false;
  } else {
    return bad_item(
        item,
        "\"8 x H100\", \"no GPUs\", \"rack r1\", \"zone a\", \"cpu 96\", \"memory 1Ti\", "
        "\"storage 1Ti\", \"max pods 9\", \"resource NAME N\", \"label k=v\", "
        "\"taint k=v:Effect\", \"cordoned\", \"not ready\", \"unhealthy 0,1\", "
        "\"reserved 0\", \"cliques 0-3 4-7\", \"numa 0-3 4-7\", \"numa policy P\", "
        "\"4 shares a GPU\", \"4 renamed shares a GPU\" or \"mig 1g.10gb x 7 on 0\"");
  }
  return {};
}

kinds::GpuNode agent_of(const NodeWords& n, const std::string& name) {
  kinds::GpuNode node;
  node.name = name;
  node.reserved_gpus = n.reserved;
  const kinds::Product* product = kinds::find_product(n.product);
  for (int i = 0; i < n.gpus; ++i) {
    kinds::GpuNodeGpu g;
    g.gpu.index = i;
    g.gpu.uuid = "GPU-" + name + "-" + std::to_string(i);
    g.gpu.model = n.product;
    g.shares = n.shares;
    if (product != nullptr) {
      g.gpu.memory_mib = product->memory_mib;
      if (product->nvlink) g.gpu.nvlink_clique = 0;
      if (product->per_node == n.gpus && product->per_numa > 0) g.gpu.numa = i / product->per_numa;
      if (product->per_node == n.gpus && product->per_switch > 0) {
        g.gpu.pcie_switch = i / product->per_switch;
      }
    }
    node.gpus.push_back(std::move(g));
  }
  const auto each = [&](const std::vector<int>& indices, auto&& change) {
    for (const int i : indices) {
      if (i < n.gpus) change(node.gpus[static_cast<std::size_t>(i)].gpu);
    }
  };
  const auto groups = [&](const std::vector<std::vector<int>>& lists,
                          int model::GpuSpec::* member) {
    for (std::size_t k = 0; k < lists.size(); ++k) {
      each(lists[k], [&](model::GpuSpec& g) { g.*member = static_cast<int>(k); });
    }
  };
  groups(n.cliques, &model::GpuSpec::nvlink_clique);
  groups(n.numa, &model::GpuSpec::numa);
  groups(n.switches, &model::GpuSpec::pcie_switch);
  each(n.unhealthy, [](model::GpuSpec& g) {
    g.health = model::Health::kUnhealthy;
    g.health_reason = "Xid 79";
  });
  for (const NodeWords::Mig& mig : n.mig) {
    each(mig.gpus, [&](model::GpuSpec& g) { g.mig.push_back({mig.resource, mig.count}); });
  }
  if (n.numa_policy == "restricted") node.numa_policy = model::NumaPolicy::kRestricted;
  if (n.numa_policy == "single-numa-node") node.numa_policy = model::NumaPolicy::kSingleNumaNode;
  if (n.numa_policy == "best-effort") node.numa_policy = model::NumaPolicy::kBestEffort;
  if (n.numa_scope == "pod") node.numa_scope = model::NumaScope::kPod;
  return node;
}

// GPUs or shares that the kubelet would advertise.
int advertised(const NodeWords& n) {
  int whole = 0;
  for (int i = 0; i < n.gpus; ++i) {
    bool out = false;
    for (const int bad : n.unhealthy) out |= bad == i;
    for (const NodeWords::Mig& mig : n.mig) {
      for (const int g : mig.gpus) out |= g == i;
    }
    if (!out) whole += n.shares;
  }
  return whole;
}

std::string node_json(const NodeWords& n, const std::string& name) {
  text::JsonWriter out;
  out.object([&] {
    out.field("apiVersion", "v1");
    out.field("kind", "Node");
    out.object("metadata", [&] {
      out.field("name", name);
      std::map<std::string, std::string> labels = n.labels;
      labels.emplace("kubernetes.io/hostname", name);
      if (n.gpus > 0) {
        labels.emplace("nvidia.com/gpu.product", n.product);
        labels.emplace("nvidia.com/gpu.count", std::to_string(n.gpus));
        if (n.shares > 1) {
          labels.emplace("nvidia.com/gpu.replicas", std::to_string(n.shares));
          labels.emplace("nvidia.com/gpu.sharing-strategy", "time-slicing");
        }
      }
      out.object("labels", [&] {
        for (const auto& [key, value] : labels) out.field(key, value);
      });
    });
    out.object("spec", [&] {
      if (n.cordoned) out.field("unschedulable", true);
      out.array("taints", [&] {
        for (const NodeTaint& taint : n.taints) {
          out.object([&] {
            out.field("key", taint.key);
            if (!taint.value.empty()) out.field("value", taint.value);
            out.field("effect", taint.effect);
          });
        }
      });
    });
    out.object("status", [&] {
      out.object("allocatable", [&] {
        for (const auto& [resource, amount] : n.amounts) out.field(resource, amount);
        if (n.gpus > 0) {
          out.field(n.renamed ? "nvidia.com/gpu.shared" : "nvidia.com/gpu",
                    std::to_string(advertised(n)));
        }
        std::map<std::string, int> slots;
        for (const NodeWords::Mig& mig : n.mig) {
          slots[mig.resource] += mig.count * static_cast<int>(mig.gpus.size());
        }
        for (const auto& [resource, count] : slots) out.field(resource, std::to_string(count));
      });
      out.array("conditions", [&] {
        out.object([&] {
          out.field("type", "Ready");
          out.field("status", n.ready ? "True" : "False");
        });
      });
    });
  });
  return std::move(out).take();
}

}  // namespace

std::string product_of(std::string_view model) {
  if (model == "H100") return "NVIDIA-H100-80GB-HBM3";
  if (model == "A100") return "NVIDIA-A100-SXM4-80GB";
  if (model == "T4") return "Tesla-T4";
  if (model.find('-') == std::string_view::npos) return "NVIDIA-" + std::string(model);
  return std::string(model);
}

Result<std::vector<Object>> read_nodes(const std::vector<std::string>& head,
                                       std::string_view body) {
  // "node m1" or "4 nodes n": n0 to n3
  const bool many = head.size() == 3 && head[1] == "nodes" && number_of(head[0]);
  if (!many && !(head.size() == 2 && head[0] == "node")) {
    return invalid("want \"node NAME: ...\" or \"N nodes NAME: ...\"");
  }
  NodeWords n;
  for (const std::string& item : split_at(body, ", ")) BERTH_CHECK(read_node_item(item, n));
  std::vector<Object> out;
  const int count = many ? *number_of(head[0]) : 1;
  for (int i = 0; i < count; ++i) {
    const std::string name = many ? head[2] + std::to_string(i) : head[1];
    out.push_back({"Node", name, node_json(n, name)});
    if (!n.agent) continue;
    text::JsonWriter json;
    kinds::encode(agent_of(n, name), json);
    out.push_back({"GpuNode", name, std::move(json).take()});
  }
  return out;
}

}  // namespace berth::scenario
