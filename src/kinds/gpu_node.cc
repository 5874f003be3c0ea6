#include "kinds/gpu_node.h"

#include <algorithm>

#include "text/path.h"

namespace berth::kinds {

namespace {

using model::GpuSpec;
using model::Health;
using model::MigSlots;
using model::NicSpec;
using model::NumaPolicy;
using model::NumaScope;
using text::Decoder;
using text::Value;

constexpr int kMaxPosition = 255;

constexpr std::pair<std::string_view, Health> kHealthStates[] = {{"Healthy", Health::kHealthy},
                                                                 {"Unhealthy", Health::kUnhealthy},
                                                                 {"Unknown", Health::kUnknown}};
constexpr std::pair<std::string_view, NumaPolicy> kNumaPolicies[] = {
    {"none", NumaPolicy::kNone},
    {"best-effort", NumaPolicy::kBestEffort},
    {"restricted", NumaPolicy::kRestricted},
    {"single-numa-node", NumaPolicy::kSingleNumaNode}};
constexpr std::pair<std::string_view, NumaScope> kNumaScopes[] = {
    {"container", NumaScope::kContainer}, {"pod", NumaScope::kPod}};

constexpr text::Field<MigSlots> kMigSlotFields[] = {
    text::required(text::field<&MigSlots::resource>("resource")),
    text::required(text::field<&MigSlots::count, text::int_between<1, 8>>("count")),
};
void read_mig_slots(const Value& v, MigSlots& out, Decoder& d) {
  const std::size_t before = d.errors();
  decode_object(v, kMigSlotFields, out, d);
  if (d.errors() == before && !out.resource.starts_with("nvidia.com/mig-")) {
    Decoder::Step step(d, "resource");
    d.error(v, quoted(out.resource), "a resource that begins with nvidia.com/mig-");
  }
  if (d.errors() != before) out.count = 0;
}

constexpr text::Field<GpuSpec> kHealthFields[] = {
    text::required(text::field<&GpuSpec::health, text::one_of<kHealthStates>>("state")),
    text::field<&GpuSpec::health_reason>("reason"),
};

template <auto Member, auto Reader = text::internal::DefaultReader{}>
void read_gpu_member(const Value& v, GpuNodeGpu& out, Decoder& d) {
  Reader(v, out.gpu.*Member, d);
}
constexpr auto read_position = text::int_between<0, kMaxPosition>;

using G = GpuNodeGpu;
constexpr text::Field<G> kGpuFields[] = {
    text::required(
        text::custom<G>("index", read_gpu_member<&GpuSpec::index, text::int_between<0, 15>>)),
    text::custom<G>("uuid", read_gpu_member<&GpuSpec::uuid>),
    text::custom<G>("model", read_gpu_member<&GpuSpec::model>),
    text::custom<G>("memoryMiB",
                    read_gpu_member<&GpuSpec::memory_mib, text::int_between<0, 100'000'000>>),
    text::custom<G>("numaNode", read_gpu_member<&GpuSpec::numa, read_position>),
    text::custom<G>("pcieSwitch", read_gpu_member<&GpuSpec::pcie_switch, read_position>),
    text::custom<G>("nvlinkClique", read_gpu_member<&GpuSpec::nvlink_clique, read_position>),
    text::custom<G>("migSlots", read_gpu_member<&GpuSpec::mig, list_of<read_mig_slots>>),
    text::field<&G::shares, text::int_between<1, model::kMaxSharesPerGpu>>("shares"),
    text::custom<G>("health", [](const Value& v, G& out,
                                 Decoder& d) { decode_object(v, kHealthFields, out.gpu, d); }),
    text::field<&G::holders>("holders"),
};
constexpr int kNoIndex = -1;
// One that cannot be read in full is there and gets nothing new.
void read_gpu(const Value& v, G& out, Decoder& d) {
  const std::size_t before = d.errors();
  out.gpu.index = kNoIndex;
  decode_object(v, kGpuFields, out, d);
  if (d.errors() == before) return;
  out.gpu.health = Health::kUnknown;
  out.gpu.health_reason = "its entry in the GpuNode cannot be read";
  std::erase_if(out.gpu.mig, [](const MigSlots& slots) { return slots.count == 0; });
}

constexpr text::Field<NicSpec> kNicFields[] = {
    text::required(text::field<&NicSpec::name>("name")),
    text::field<&NicSpec::numa, read_position>("numaNode"),
    text::field<&NicSpec::pcie_switch, read_position>("pcieSwitch"),
};
constexpr auto read_nic = object_of<kNicFields>;

constexpr text::Field<GpuNode> kTopologyManagerFields[] = {
    text::field<&GpuNode::numa_policy, text::one_of<kNumaPolicies>>("policy"),
    text::field<&GpuNode::numa_scope, text::one_of<kNumaScopes>>("scope"),
};

constexpr text::Field<GpuNode> kGpuNodeSpecFields[] = {
    text::field<&GpuNode::reserved_gpus, list_of<text::int_between<0, 15>>>("reservedGpus"),
};
constexpr text::Field<GpuNode> kGpuNodeStatusFields[] = {
    text::field<&GpuNode::driver_version>("driverVersion"),
    text::field<&GpuNode::cuda_version>("cudaVersion"),
    text::inlined<kTopologyManagerFields>("topologyManager"),
    text::field<&GpuNode::gpus, list_of<read_gpu>>("gpus"),
    text::field<&GpuNode::nics, list_of<read_nic>>("nics"),
};
constexpr text::Field<GpuNode> kGpuNodeFields[] = {
    text::skip<GpuNode>("apiVersion"),
    text::skip<GpuNode>("kind"),
    text::skip<GpuNode>("metadata"),
    text::inlined<kGpuNodeSpecFields>("spec"),
    text::inlined<kGpuNodeStatusFields>("status"),
};

void check_gpus(const Value& v, GpuNode& out, Decoder& d) {
  const Value* at = find(v, "status.gpus");
  Decoder::Step status(d, "status");
  Decoder::Step gpus(d, "gpus");
  const Value& where = at == nullptr ? v : *at;
  if (out.gpus.size() > model::kMaxGpusPerNode) {
    d.error(where, std::to_string(out.gpus.size()) + " GPUs", "at most 16");
  }
  std::erase_if(out.gpus, [](const G& g) { return g.gpu.index == kNoIndex; });  // told already
  std::stable_sort(out.gpus.begin(), out.gpus.end(),
                   [](const G& a, const G& b) { return a.gpu.index < b.gpu.index; });
  for (std::size_t i = 1; i < out.gpus.size(); ++i) {
    if (out.gpus[i].gpu.index == out.gpus[i - 1].gpu.index) {
      d.error(where, "index " + std::to_string(out.gpus[i].gpu.index) + " twice",
              "each index once");
      out.gpus[i - 1].gpu.health = out.gpus[i].gpu.health = Health::kUnknown;
    }
  }
  const auto again = [](const G& a, const G& b) { return a.gpu.index == b.gpu.index; };
  out.gpus.erase(std::unique(out.gpus.begin(), out.gpus.end(), again), out.gpus.end());
}

void put_position(text::JsonWriter& out, std::string_view key, int position) {
  if (position >= 0) out.field(key, position);
}
void put_text(text::JsonWriter& out, std::string_view key, const std::string& text) {
  if (!text.empty()) out.field(key, text);
}

void encode_gpu(const GpuNodeGpu& g, text::JsonWriter& out) {
  out.object([&] {
    out.field("index", g.gpu.index);
    put_text(out, "uuid", g.gpu.uuid);
    put_text(out, "model", g.gpu.model);
    if (g.gpu.memory_mib > 0) out.field("memoryMiB", g.gpu.memory_mib);
    put_position(out, "numaNode", g.gpu.numa);
    put_position(out, "pcieSwitch", g.gpu.pcie_switch);
    put_position(out, "nvlinkClique", g.gpu.nvlink_clique);
    if (!g.gpu.mig.empty()) {
      out.array("migSlots", [&] {
        for (const MigSlots& slots : g.gpu.mig) {
          out.object([&] {
            out.field("resource", slots.resource);
            out.field("count", slots.count);
          });
        }
      });
    }
    out.field("shares", g.shares);
    out.object("health", [&] {
      out.field("state", word_of(kHealthStates, g.gpu.health));
      put_text(out, "reason", g.gpu.health_reason);
    });
    if (!g.holders.empty()) {
      out.list("holders", g.holders);
    }
  });
}

void encode_status(const GpuNode& node, text::JsonWriter& out) {
  out.object([&] {
    put_text(out, "driverVersion", node.driver_version);
    put_text(out, "cudaVersion", node.cuda_version);
    out.object("topologyManager", [&] {
      out.field("policy", word_of(kNumaPolicies, node.numa_policy));
      out.field("scope", word_of(kNumaScopes, node.numa_scope));
    });
    out.array("gpus", [&] {
      for (const GpuNodeGpu& g : node.gpus) encode_gpu(g, out);
    });
    out.array("nics", [&] {
      for (const NicSpec& nic : node.nics) {
        out.object([&] {
          out.field("name", nic.name);
          put_position(out, "numaNode", nic.numa);
          put_position(out, "pcieSwitch", nic.pcie_switch);
        });
      }
    });
  });
}

}  // namespace

void decode(const Value& v, GpuNode& out, Decoder& d) {
  Meta meta;
  read_meta(v, Scope::kCluster, meta, d);
  out.name = std::move(meta.name);
  out.uid = std::move(meta.uid);
  decode_object(v, kGpuNodeFields, out, d);
  check_gpus(v, out, d);
  std::erase_if(out.nics, [](const NicSpec& nic) { return nic.name.empty(); });
  std::sort(out.reserved_gpus.begin(), out.reserved_gpus.end());
  out.reserved_gpus.erase(std::unique(out.reserved_gpus.begin(), out.reserved_gpus.end()),
                          out.reserved_gpus.end());
  for (G& g : out.gpus) {
    g.gpu.reserved =
        std::binary_search(out.reserved_gpus.begin(), out.reserved_gpus.end(), g.gpu.index);
  }
}

void encode(const GpuNode& node, text::JsonWriter& out) {
  out.object([&] {
    out.field("apiVersion", "berth.dev/v1alpha1");
    out.field("kind", "GpuNode");
    out.object("metadata", [&] {
      out.field("name", node.name);
      put_text(out, "uid", node.uid);
    });
    out.object("spec", [&] {
      if (!node.reserved_gpus.empty()) {
        out.array("reservedGpus", [&] {
          for (const int index : node.reserved_gpus) out.value(index);
        });
      }
    });
    out.key("status");
    encode_status(node, out);
  });
}

std::string status_patch(const GpuNode& node) {
  text::JsonWriter out;
  out.object([&] {
    out.key("status");
    encode_status(node, out);
  });
  return std::move(out).take();
}

std::string bare_gpu_node(const std::string& node, const std::string& node_uid) {
  text::JsonWriter out;
  out.object([&] {
    out.field("apiVersion", "berth.dev/v1alpha1");
    out.field("kind", "GpuNode");
    out.object("metadata", [&] {
      out.field("name", node);
      out.array("ownerReferences", [&] {
        out.object([&] {
          out.field("apiVersion", "v1");
          out.field("kind", "Node");
          out.field("name", node);
          out.field("uid", node_uid);
        });
      });
    });
  });
  return std::move(out).take();
}

}  // namespace berth::kinds
