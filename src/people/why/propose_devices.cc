// Fixes of what kind of device is asked for: resources that no node offers, MIG profiles, shares.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "kinds/products.h"
#include "model/amounts.h"
#include "people/view/words.h"
#include "people/why/fixes.h"
#include "text/nearest.h"

namespace berth::people {

namespace {

using model::GpuDemandSpec;
using model::PodSpec;

constexpr const char* kWholeGpu = "nvidia.com/gpu";
constexpr const char* kSharedGpu = "nvidia.com/gpu.shared";
constexpr std::string_view kMigPrefix = "nvidia.com/mig-";

// What nodes offer beside cpu and memory, and the most of it on one.
std::map<std::string, std::int64_t> offered(const Situation& s) {
  std::map<std::string, std::int64_t> out;
  for (const model::NodeSpec& node : s.inputs().nodes) {
    for (const auto& [resource, amount] : node.allocatable) {
      if (resource.find('/') == std::string::npos || amount <= 0) continue;
      std::int64_t& most = out[resource];
      most = std::max(most, amount);
    }
    const auto gpus = static_cast<std::int64_t>(node.gpus.size());
    const bool mig = std::any_of(
        node.allocatable.begin(), node.allocatable.end(),
        [](const auto& each) { return each.first.starts_with(kMigPrefix) && each.second > 0; });
    if (gpus == 0 || mig) continue;
    for (const char* name : {kWholeGpu, kSharedGpu}) {
      if (name == kWholeGpu ? !model::offers_gpus(node) : !model::offers_shares(node)) continue;
      std::int64_t& most = out[name];
      most = std::max(most, gpus * node.shares_per_gpu);
    }
  }
  return out;
}

std::string asked_device(const GpuDemandSpec& demand) {
  switch (demand.kind) {
    case GpuDemandSpec::Kind::kMig:
      return demand.mig;
    case GpuDemandSpec::Kind::kShared:
      return kSharedGpu;
    case GpuDemandSpec::Kind::kWhole:
      return kWholeGpu;
    default:
      return "";
  }
}

// "nvidia.com/mig-3g.40gb": 40; 0: no profile.
int gigabytes_of(const std::string& resource) {
  if (!resource.starts_with(kMigPrefix)) return 0;
  const std::size_t dot = resource.find('.', kMigPrefix.size());
  int out = 0;
  for (std::size_t i = dot + 1; dot != std::string::npos && i < resource.size(); ++i) {
    if (resource[i] < '0' || resource[i] > '9' || out > 10'000) break;
    out = out * 10 + (resource[i] - '0');
  }
  return out;
}

GpuDemandSpec demand_of(const std::string& resource, int count) {
  GpuDemandSpec out{.kind = GpuDemandSpec::Kind::kWhole, .count = count};
  if (resource == kSharedGpu) out.kind = GpuDemandSpec::Kind::kShared;
  if (resource.starts_with(kMigPrefix)) {
    out.kind = GpuDemandSpec::Kind::kMig;
    out.mig = resource;
  }
  return out;
}

bool is_gpu(const std::string& resource) {
  return resource == kWholeGpu || resource == kSharedGpu || resource.starts_with(kMigPrefix);
}

using AmountEdit = std::function<std::string(const std::string& now)>;

// Every container that asks for from asks for to; an empty amount takes it away.
void rename_resource(Tree& spec, const std::string& from, const std::string& to,
                     const AmountEdit& amount) {
  for_each_amounts(spec, [&](Tree& amounts) {
    const Tree* now = amounts.find(from);
    if (now == nullptr) return;
    const std::string value = amount(now->string());
    amounts.erase(from);
    if (!value.empty()) amounts[to] = Tree::of_text(value);
  });
}

std::string same_amount(const std::string& now) { return now; }
std::string no_amount(const std::string& /*now*/) { return ""; }

// The model's side of a renamed resource.
void ask_for(PodSpec& pod, const std::string& from, const std::string& to) {
  std::int64_t count = 0;
  if (asked_device(pod.gpu) == from) {
    count = pod.gpu.count;
    pod.gpu = {};
    pod.gpus_by_container.clear();
  } else {
    const auto it = pod.requests.find(from);
    if (it == pod.requests.end()) return;
    count = it->second;
    pod.requests.erase(it);
  }
  if (to.empty()) return;
  if (!is_gpu(to)) {
    pod.requests[to] += count;
    return;
  }
  pod.gpu = demand_of(to, static_cast<int>(std::min<std::int64_t>(count, 1'000'000)));
  if (to == kWholeGpu) pod.gpus_by_container = {pod.gpu.count};
}

void other_resource(const Situation& s, const std::string& from, const std::string& to,
                    int disturbance, Proposals& out) {
  out.push_back({.title = to.empty() ? "ask for no " + from
                                     : fmt::format("ask for {} instead of {}", to, from),
                 .kind = to.empty() ? "fewer-resources" : "other-resource",
                 .disturbance = disturbance,
                 .apply = [&s, from, to](Draft& draft) {
                   return edit_pods(
                       s, draft, [&](PodSpec& pod) { ask_for(pod, from, to); },
                       [&](Tree&, Tree& spec) {
                         rename_resource(spec, from, to, to.empty() ? no_amount : same_amount);
                       });
                 }});
}

// A device that no node offers: another profile, the next larger first; shares or whole GPUs.
void absent_device(const Situation& s, const std::map<std::string, std::int64_t>& there,
                   Proposals& out) {
  const std::string asked = asked_device(s.sample.gpu);
  if (asked.empty() || there.contains(asked)) return;
  std::vector<std::pair<int, std::string>> larger, smaller;
  for (const auto& [resource, most] : there) {
    if (!is_gpu(resource) || most < s.sample.gpu.count) continue;
    const int size = gigabytes_of(resource), wanted = gigabytes_of(asked);
    if (size == 0) {
      larger.emplace_back(1'000'000, resource);
    } else if (size >= wanted) {
      larger.emplace_back(size, resource);
    } else {
      smaller.emplace_back(-size, resource);
    }
  }
  std::sort(larger.begin(), larger.end());
  std::sort(smaller.begin(), smaller.end());
  for (const auto& [size, resource] : larger) other_resource(s, asked, resource, 1, out);
  for (const auto& [size, resource] : smaller) other_resource(s, asked, resource, 2, out);
}

// A resource that no node offers, by its name: one that is written like it, or a GPU.
void absent_resources(const Situation& s, const std::map<std::string, std::int64_t>& there,
                      Proposals& out) {
  std::vector<std::string> names;
  for (const auto& [resource, most] : there) names.push_back(resource);
  for (const auto& [resource, amount] : s.sample.requests) {
    if (resource.find('/') == std::string::npos || there.contains(resource)) continue;
    std::string meant = text::nearest(resource, names);
    const bool like_gpu = resource.find("gpu") != std::string::npos ||
                          resource.find("GPU") != std::string::npos ||
                          resource.starts_with("nvidia.com/");
    if (meant.empty() && like_gpu) {
      meant = there.contains(kWholeGpu) ? kWholeGpu : there.contains(kSharedGpu) ? kSharedGpu : "";
    }
    if (!meant.empty()) other_resource(s, resource, meant, 1, out);
  }
}

// Fewer slices or shares than are asked for.
void fewer_slices(const Situation& s, const std::map<std::string, std::int64_t>& there,
                  Proposals& out) {
  const bool slices = s.sample.gpu.kind == GpuDemandSpec::Kind::kMig ||
                      s.sample.gpu.kind == GpuDemandSpec::Kind::kShared;
  if (!slices || s.sample.gpu.count < 2) return;
  const std::string asked = asked_device(s.sample.gpu);
  std::set<int, std::greater<>> sizes;
  const auto most = there.find(asked);
  if (most != there.end() && most->second < s.sample.gpu.count) {
    sizes.insert(static_cast<int>(most->second));
  }
  for (int size = s.sample.gpu.count / 2; size > 0; size /= 2) sizes.insert(size);
  for (const int each : sizes) {
    out.push_back(
        {.title = fmt::format("ask for {} {} a pod instead of {}", each, asked, s.sample.gpu.count),
         .kind = "fewer-gpus",
         .disturbance = 2,
         .apply = [&s, each, asked](Draft& draft) {
           return edit_pods(
               s, draft, [&](PodSpec& pod) { pod.gpu.count = each; },
               [&](Tree&, Tree& spec) {
                 bool given = false;  // the first container gets them
                 rename_resource(spec, asked, asked, [&](const std::string&) {
                   const std::string value = given ? "" : std::to_string(each);
                   given = true;
                   return value;
                 });
               });
         }});
  }
}

// GPUs in several containers: a part of each.
void fewer_in_containers(const Situation& s, Proposals& out) {
  const std::vector<int>& now = s.sample.gpus_by_container;
  if (s.sample.gpu.kind != GpuDemandSpec::Kind::kWhole || now.size() < 2) return;
  for (int part = 2; part <= 8; part *= 2) {
    int all = 0;
    for (const int gpus : now) all += std::max(1, gpus / part);
    if (all >= s.sample.gpu.count) break;
    out.push_back(
        {.title = fmt::format("ask for {} a pod instead of {}, in {} containers",
                              show_count(all, "GPU"), s.sample.gpu.count, now.size()),
         .kind = "fewer-gpus",
         .disturbance = 2,
         .apply = [&s, part](Draft& draft) {
           return edit_pods(
               s, draft,
               [&](PodSpec& pod) {
                 pod.gpu.count = 0;
                 for (int& gpus : pod.gpus_by_container) {
                   gpus = std::max(1, gpus / part);
                   pod.gpu.count += gpus;
                 }
               },
               [&](Tree&, Tree& spec) {
                 rename_resource(spec, kWholeGpu, kWholeGpu, [&](const std::string& text) {
                   const bool plain = !text.empty() && text.size() < 7 &&
                                      text.find_first_not_of("0123456789") == std::string::npos;
                   return plain ? std::to_string(std::max(1, std::stoi(text) / part)) : text;
                 });
               });
         }});
  }
}

// ---- another MIG layout ----

// How many slots of the profile ("3g.40gb") one GPU of the product gives; 0: it has no such one.
int slots_of(const kinds::Product& product, const std::string& profile) {
  const int slots = kinds::mig_slots_per_gpu(profile, product.mig_slices, product.memory_mib);
  const int size = gigabytes_of(std::string(kMigPrefix) + profile);
  if (product.mig_slices < 1 || slots < 1 || size < 1) return 0;
  // Memory comes in eighths of a GPU with seven slices, in quarters of one with four; a profile of
  // one slice may have two of them. Names round it up or down.
  const int parts = product.mig_slices > 4 ? 8 : 4;
  const double part = static_cast<double>(product.memory_mib) / 1024 / parts;
  const int slices = profile.empty() ? 0 : profile[0] - '0';
  for (const int eighths : {slices, slices == 1 ? 2 : slices, slices == 3 ? 4 : parts}) {
    const bool whole = eighths != parts || slices >= product.mig_slices;
    const double memory = part * eighths;
    if (whole && memory - 1.5 <= size && size <= memory + 1.5) return slots;
  }
  return 0;
}

// Nobody holds a GPU of the node, so that it may be cut anew.
bool no_gpu_held(const Situation& s, std::uint32_t slot) {
  bool held = false;
  s.state->for_each_pod_on(
      slot, [&](model::PodId id) { held |= s.state->pod(id).shape->demand->asks_gpu(); });
  return !held;
}

std::string layout_of(const std::string& resource) {
  if (resource == kWholeGpu) return "all-disabled";
  std::string profile = resource.substr(kMigPrefix.size());
  std::replace(profile.begin(), profile.end(), '+', '.');
  return "all-" + profile;
}

// What the Node and the GpuNode say once the GPUs are cut so.
void cut_anew(const Situation& s, Draft& draft, const std::string& node,
              const std::string& resource, int gpus, int slots) {
  if (Tree* tree = draft.edit(s.objects(), "Node", "", node)) {
    Tree& labels = (*tree)["metadata"]["labels"];
    labels["nvidia.com/mig.config"] = Tree::of_text(layout_of(resource));
    for (const char* list : {"capacity", "allocatable"}) {
      Tree* amounts = tree->find("status") == nullptr ? nullptr : (*tree)["status"].find(list);
      if (amounts == nullptr) continue;
      std::erase_if(amounts->members(),
                    [](const auto& each) { return each.first.starts_with(kMigPrefix); });
      (*amounts)[kWholeGpu] = Tree::of_text(std::to_string(slots == 0 ? gpus : 0));
      if (slots > 0) (*amounts)[resource] = Tree::of_text(std::to_string(gpus * slots));
    }
  }
  Tree* agent = draft.edit(s.objects(), "GpuNode", "", node);
  Tree* status = agent == nullptr ? nullptr : agent->find("status");
  if (status == nullptr || status->find("gpus") == nullptr) return;
  for (Tree& gpu : (*status)["gpus"].items()) {
    gpu.erase("migSlots");
    if (slots == 0) continue;
    Tree cut;
    cut["resource"] = Tree::of_text(resource);
    cut["count"] = Tree::of_number(slots);
    gpu["migSlots"].items().push_back(std::move(cut));
  }
}

// A profile that no free slot is left of, or whole GPUs where all are cut: another layout on a node
// whose GPUs nobody holds. Rules that keep the pod off the node stay.
void repartition(const Situation& s, Proposals& out) {
  const std::string asked = asked_device(s.sample.gpu);
  const bool mig = s.sample.gpu.kind == GpuDemandSpec::Kind::kMig;
  const bool whole = s.sample.gpu.kind == GpuDemandSpec::Kind::kWhole;
  if (s.picture == nullptr || s.state == nullptr || s.objects() == nullptr || (!mig && !whole)) {
    return;
  }
  int proposed = 0;
  for (const NodeView& view : s.picture->nodes) {
    if (proposed >= 2 || view.gpus == 0 || !no_gpu_held(s, view.slot)) continue;
    const std::string& name = s.state->info(view.slot).name;
    const auto raw = s.objects()->find("Node", "", name);
    const auto at = std::find_if(s.inputs().nodes.begin(), s.inputs().nodes.end(),
                                 [&](const model::NodeSpec& node) { return node.name == name; });
    if (!raw || at == s.inputs().nodes.end() || at->gpus.empty() || at->shares_per_gpu > 1) {
      continue;
    }
    const bool cut = std::any_of(at->gpus.begin(), at->gpus.end(),
                                 [](const model::GpuSpec& gpu) { return !gpu.mig.empty(); });
    const kinds::Product* product = kinds::find_product(at->gpus.front().model);
    const int slots =
        product == nullptr || !mig ? 0 : slots_of(*product, asked.substr(kMigPrefix.size()));
    if (mig ? slots == 0 : !cut) continue;
    ++proposed;
    const int gpus = static_cast<int>(at->gpus.size());
    out.push_back({.title = fmt::format("cut the GPUs of {} anew: nvidia.com/mig.config={}", name,
                                        layout_of(asked)),
                   .kind = "repartition",
                   .disturbance = 3,
                   .objects_only = true,
                   .apply = [&s, name, asked, gpus, slots](Draft& draft) {
                     cut_anew(s, draft, name, asked, gpus, slots);
                     return !draft.objects.empty();
                   }});
  }
}

// Resources that its queue does not count, and that are no GPUs: it may do without.
void uncounted_resources(const Situation& s, Proposals& out) {
  if (s.reason != model::Reason::kNoMatchingFlavor) return;
  for (const auto& [resource, amount] : s.sample.requests) {
    if (resource.find('/') != std::string::npos) other_resource(s, resource, "", 2, out);
  }
}

}  // namespace

void propose_devices(const Situation& s, Proposals& out) {
  const std::map<std::string, std::int64_t> there = offered(s);
  absent_device(s, there, out);
  absent_resources(s, there, out);
  fewer_slices(s, there, out);
  fewer_in_containers(s, out);
  repartition(s, out);
  uncounted_resources(s, out);
}

}  // namespace berth::people
