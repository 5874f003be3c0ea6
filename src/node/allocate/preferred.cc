#include "node/allocate/preferred.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <tuple>
#include <utility>

#include "kinds/readers.h"
#include "model/device_choice.h"

namespace berth::allocate {
namespace {

// The devices of must and more, which are disjoint, ascending.
std::vector<std::size_t> merged(std::vector<std::size_t> must,
                                const std::vector<std::size_t>& more) {
  must.insert(must.end(), more.begin(), more.end());
  std::sort(must.begin(), must.end());
  return must;
}

}  // namespace

Chooser::Chooser(const model::GpuInventory& inventory, const model::OfferedResource& resource,
                 bool packed)
    : resource_(resource.name), devices_(resource.devices), packed_(packed) {
  const std::vector<int> cliques = model::nvlink_cliques(inventory);
  for (std::size_t i = 0; i < inventory.gpus.size(); ++i) {
    const model::GpuDevice& gpu = inventory.gpus[i];
    gpus_[gpu.index] = {.index = gpu.index,
                        .numa = gpu.numa,
                        .pcie_switch = gpu.pcie_switch,
                        .nvlink_clique = cliques[i]};
  }
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    by_id_.emplace(devices_[i].id, i);
    if (devices_[i].mig >= 0 || devices_[i].replica >= 0) whole_ = false;
  }
}

Result<Chooser::Places> Chooser::places(const std::vector<std::string>& ids) const {
  Places out;
  for (const std::string& id : ids) {
    auto it = by_id_.find(id);
    if (it == by_id_.end()) {
      return Error(Code::kNotFound, resource_ + ": there is no device " + kinds::quoted(id));
    }
    out.push_back(it->second);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// open holds must. Only what is on offer matters to the rules, so places of open can stand for
// indices of a node.
Chooser::Places Chooser::choose_whole(const Places& open, const Places& must,
                                      std::size_t size) const {
  if (open.size() > model::kMaxGpusPerNode) return choose_many(open, must, size);
  model::NodeInfo info;
  std::uint16_t forced = 0;
  for (std::size_t i = 0; i < open.size(); ++i) {
    model::GpuSpec gpu;
    if (auto it = gpus_.find(devices_[open[i]].gpu); it != gpus_.end()) gpu = it->second;
    gpu.index = static_cast<int>(i);
    info.gpus.push_back(std::move(gpu));
    if (std::binary_search(must.begin(), must.end(), open[i])) {
      forced = static_cast<std::uint16_t>(forced | 1u << i);
    }
  }
  model::Demand demand;
  demand.kind = model::GpuDemandSpec::Kind::kWhole;
  demand.count = static_cast<int>(size);
  const auto all = static_cast<std::uint16_t>((1u << open.size()) - 1);
  const std::uint16_t chosen = model::choose_whole(info, all, demand, forced);
  Places out;
  for (std::size_t i = 0; i < open.size(); ++i) {
    if ((chosen >> i & 1) != 0) out.push_back(open[i]);
  }
  return out;
}

// Too many for every subset: cliques that must be touched come first, then the smallest that
// covers the rest, else the largest; within one, NUMA node by NUMA node in the same way.
Chooser::Places Chooser::choose_many(const Places& open, const Places& must,
                                     std::size_t size) const {
  using Group = std::pair<int, int>;  // clique, or a number of its own; NUMA node
  std::map<Group, Places> groups;
  std::map<int, std::size_t> in_clique;
  std::map<Group, bool> touched;
  std::map<int, bool> clique_touched;
  for (std::size_t place : open) {
    const int index = devices_[place].gpu;
    auto it = gpus_.find(index);
    int clique = it == gpus_.end() ? -1 : it->second.nvlink_clique;
    if (clique < 0) clique = -1 - index;
    const Group group{clique, it == gpus_.end() ? -1 : it->second.numa};
    if (std::binary_search(must.begin(), must.end(), place)) {
      touched[group] = clique_touched[clique] = true;
      continue;
    }
    groups[group].push_back(place);
    ++in_clique[clique];
  }
  Places more;
  while (more.size() + must.size() < size) {
    const std::size_t need = size - must.size() - more.size();
    const auto rank = [&](const Group& group, const Places& members) {
      const auto fit = [need](std::size_t n) { return n >= need ? n : 2 * (need + 10'000) - n; };
      return std::tuple(!clique_touched[group.first], fit(in_clique[group.first]), group.first,
                        !touched[group], fit(members.size()), group.second);
    };
    auto best = groups.end();
    for (auto it = groups.begin(); it != groups.end(); ++it) {
      if (best == groups.end() || rank(it->first, it->second) < rank(best->first, best->second)) {
        best = it;
      }
    }
    if (best == groups.end()) break;
    const std::size_t take = std::min(need, best->second.size());
    more.insert(more.end(), best->second.begin(),
                best->second.begin() + static_cast<std::ptrdiff_t>(take));
    touched[best->first] = clique_touched[best->first.first] = true;
    in_clique[best->first.first] -= take;
    groups.erase(best);
  }
  return merged(must, more);
}

// One after the other, from the GPU with the least (packed: the most) handed out, then from the
// one this container has the least of; within a GPU the same over its MIG instances.
Chooser::Places Chooser::choose_parts(const Places& open, const Places& must,
                                      std::size_t size) const {
  struct Part {
    int held = 0, own = 0;
    Places left;  // descending
  };
  struct Gpu {
    int held = 0, own = 0;
    std::size_t left = 0;
    std::map<std::pair<int, std::string_view>, Part> parts;  // by place on the GPU
  };
  std::map<int, Gpu> gpus;
  for (std::size_t i = devices_.size(); i-- > 0;) {
    const model::OfferedDevice& device = devices_[i];
    Gpu& gpu = gpus[device.gpu];
    Part& part = gpu.parts[{device.mig, device.uuid}];
    if (std::binary_search(must.begin(), must.end(), i)) {
      ++gpu.own;
      ++part.own;
    } else if (std::binary_search(open.begin(), open.end(), i)) {
      ++gpu.left;
      part.left.push_back(i);
      continue;
    }
    ++gpu.held;
    ++part.held;
  }
  const auto before = [this](const auto& a, const auto& b) {
    if (a.held != b.held) return packed_ ? a.held > b.held : a.held < b.held;
    return a.own < b.own;
  };
  Places more;
  while (more.size() + must.size() < size) {
    Gpu* gpu = nullptr;
    for (auto& [index, g] : gpus) {
      if (g.left > 0 && (gpu == nullptr || before(g, *gpu))) gpu = &g;
    }
    if (gpu == nullptr) break;
    Part* part = nullptr;
    for (auto& [at, p] : gpu->parts) {
      if (!p.left.empty() && (part == nullptr || before(p, *part))) part = &p;
    }
    if (part == nullptr) break;
    more.push_back(part->left.back());
    part->left.pop_back();
    --gpu->left;
    ++gpu->held;
    ++gpu->own;
    ++part->held;
    ++part->own;
  }
  return merged(must, more);
}

Chooser::Places Chooser::best(const Places& open, const Places& must, std::size_t size) const {
  return whole_ ? choose_whole(open, must, size) : choose_parts(open, must, size);
}

Chooser::Places Chooser::narrowed(const Hint& hint, const Places& open, const Places& must,
                                  std::size_t size) const {
  if (hint.resource != resource_ || hint.size < 0 || static_cast<std::size_t>(hint.size) != size) {
    return {};
  }
  std::map<int, std::size_t> room;
  for (int gpu : hint.gpus) ++room[gpu];
  Places out;
  std::size_t kept = 0;
  for (const auto& [gpu, most] : room) {
    const auto on_gpu = [this, index = gpu](const Places& from) {
      Places found;
      std::copy_if(from.begin(), from.end(), std::back_inserter(found),
                   [&](std::size_t place) { return devices_[place].gpu == index; });
      return found;
    };
    const Places here = on_gpu(open);
    const Places kept_here = on_gpu(must);
    if (kept_here.size() > most) return {};
    kept += kept_here.size();
    const Places take = best(here, kept_here, std::min(most, here.size()));
    out.insert(out.end(), take.begin(), take.end());
  }
  if (kept != must.size() || out.size() < size) return {};
  std::sort(out.begin(), out.end());
  return out;
}

Result<Preference> Chooser::choose(const Ask& ask, const std::vector<Hint>& hints) const {
  BERTH_TRY(Places open, places(ask.available));
  BERTH_TRY(const Places must, places(ask.must_include));
  Places all;
  std::set_union(open.begin(), open.end(), must.begin(), must.end(), std::back_inserter(all));
  open = std::move(all);
  if (ask.size < 0 || static_cast<std::size_t>(ask.size) > open.size()) {
    return invalid(resource_ + ": asked for " + std::to_string(ask.size) + " devices of " +
                   std::to_string(open.size()));
  }
  const auto size = static_cast<std::size_t>(ask.size);
  if (must.size() > size) {
    return invalid(resource_ + ": asked for " + std::to_string(size) + " devices that include " +
                   std::to_string(must.size()));
  }
  Preference out;
  Places hinted;
  bool ambiguous = false;
  for (const Hint& hint : hints) {
    Places fit = size == 0 ? Places{} : narrowed(hint, open, must, size);
    if (fit.empty()) continue;
    if (hinted.empty()) {
      hinted = std::move(fit);
      out.followed = hint.pod_uid;
    } else if (hinted != fit) {
      ambiguous = true;
    }
  }
  if (ambiguous) out.followed.clear();
  const Places chosen = best(hinted.empty() || ambiguous ? open : hinted, must, size);
  for (std::size_t place : must) out.ids.push_back(devices_[place].id);
  for (std::size_t place : chosen) {
    if (!std::binary_search(must.begin(), must.end(), place)) {
      out.ids.push_back(devices_[place].id);
    }
  }
  return out;
}

}  // namespace berth::allocate
