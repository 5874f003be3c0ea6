#include "decide/admit/form.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>

namespace berth::admit {

namespace {

// Keys are bytes for one map of one process, never shown.
void put(std::string& key, std::int64_t number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  key.append(bytes, sizeof number);
}

void put(std::string& key, std::string_view text) {
  put(key, static_cast<std::int64_t>(text.size()));
  key += text;
}

void put_selector(std::string& key, const text::Selector& selector) {
  put(key, static_cast<std::int64_t>(selector.size()));
  for (const auto& requirement : selector) {
    put(key, requirement.key);
    put(key, static_cast<std::int64_t>(requirement.op));
    put(key, static_cast<std::int64_t>(requirement.values.size()));
    for (const auto& value : requirement.values) put(key, value);
  }
}

void put_terms(std::string& key, const std::vector<model::NodeSelectorTerm>& terms) {
  put(key, static_cast<std::int64_t>(terms.size()));
  for (const auto& term : terms) {
    put_selector(key, term.labels);
    put_selector(key, term.fields);
  }
}

void put_pods(std::string& key, const model::PodSet& pods) {
  put(key, static_cast<std::int64_t>(pods.namespaces.size()));
  for (const auto& ns : pods.namespaces) put(key, ns);
  put(key, (pods.all_namespaces ? 2 : 0) + (pods.match_nothing ? 1 : 0));
  put_selector(key, pods.selector);
}

// What it asks of other pods; its own labels matter for that, and else are not looked at: most Jobs
// have labels of their own.
void put_neighbours(std::string& key, const model::PodSpec& pod) {
  if (pod.affinity.empty() && pod.anti_affinity.empty() && pod.spread.empty()) return;
  put(key, pod.ns);
  for (const auto& [label, value] : pod.labels) put(key, label), put(key, value);
  for (const auto* terms : {&pod.affinity, &pod.anti_affinity}) {
    put(key, static_cast<std::int64_t>(terms->size()));
    for (const auto& term : *terms) put(key, term.topology_key), put_pods(key, term.pods);
  }
  for (const auto& spread : pod.spread) {
    put(key, spread.topology_key);
    put(key, spread.max_skew);
    put(key, spread.min_domains);
    put(key,
        (spread.hard ? 4 : 0) + (spread.honor_affinity ? 2 : 0) + (spread.honor_taints ? 1 : 0));
    put_pods(key, spread.pods);
  }
}

// What it takes of a node beside what its queue counts, and what it must reach there.
void put_needs(std::string& key, const model::PodSpec& pod) {
  put(key, static_cast<std::int64_t>(pod.requests.size()));
  for (const auto& [resource, amount] : pod.requests) put(key, resource), put(key, amount);
  put(key, static_cast<std::int64_t>(pod.gpu.kind));
  put(key, pod.gpu.count);
  put(key, pod.gpu.mig);
  put(key, static_cast<std::int64_t>(pod.gpus_by_container.size()));
  for (const int gpus : pod.gpus_by_container) put(key, gpus);
  put(key, static_cast<std::int64_t>(pod.host_ports.size()));
  for (const auto& port : pod.host_ports) {
    put(key, port.protocol);
    put(key, port.ip);
    put(key, port.port);
  }
  put(key, static_cast<std::int64_t>(pod.volumes.size()));
  for (const auto& volume : pod.volumes) put_terms(key, volume.node_terms);
  put(key, pod.volume_missing);
  put(key, pod.unread_claims ? 1 : 0);
}

// What of a pod decides where it may run, as far as flavors and nodes look at it.
void put_pod(std::string& key, const model::PodSpec& pod) {
  put(key, static_cast<std::int64_t>(pod.node_selector.size()));
  for (const auto& [label, value] : pod.node_selector) put(key, label), put(key, value);
  put_terms(key, pod.required_nodes);
  put(key, static_cast<std::int64_t>(pod.tolerations.size()));
  for (const auto& t : pod.tolerations) {
    put(key, t.key);
    put(key, t.value);
    put(key, static_cast<std::int64_t>(t.op));
    put(key, t.effect ? 1 + static_cast<std::int64_t>(*t.effect) : 0);
  }
  put(key, static_cast<std::int64_t>(pod.gpu_models.size()));
  for (const auto& model : pod.gpu_models) put(key, model);
  put(key, pod.gpu_min_memory_mib);
  put(key, pod.gpu.milli);
  put(key, pod.gpu.memory_mib);
  put_needs(key, pod);
  put_neighbours(key, pod);
}

void put_pod_set(std::string& key, const PodSet& set) {
  put(key, set.name);
  put(key, set.count);
  put(key, set.min_count);
  put(key, static_cast<std::int64_t>(set.asks.size()));
  for (const Ask& ask : set.asks) {
    put(key, ask.resource);
    put(key, ask.amount);
    put(key, ask.name);
  }
  put(key, static_cast<std::int64_t>(set.topology.mode));
  put(key, set.topology.level);
  put(key, set.topology.group);
  put(key, static_cast<std::int64_t>(set.topology.slices.size()));
  for (const auto& slice : set.topology.slices) {
    put(key, slice.level);
    put(key, slice.size);
  }
  put_pod(key, *set.pod);
}

PodSet pod_set_of(const Book& book, const model::WorkloadSpec& spec,
                  const model::PodSetSpec& from) {
  PodSet out;
  out.name = from.name;
  const auto done = spec.reclaimable.find(from.name);
  const int reclaimed = done == spec.reclaimable.end() ? 0 : done->second;
  out.count = std::max(0, from.count - reclaimed);
  if (from.min_count && out.count > 0) {
    out.min_count = std::clamp(*from.min_count - reclaimed, 1, out.count);
  }
  out.pod = from.pod;
  out.topology = from.topology;
  for (const auto& [resource, amount] : from.requests) {
    const ResourceId id = book.find_resource(resource);
    if (amount < 0) continue;
    out.asks.push_back({id, id == kNoId ? resource : std::string(), amount});
  }
  std::sort(out.asks.begin(), out.asks.end());
  return out;
}

void find_units(Form& form) {
  std::map<std::string, std::size_t> groups;
  for (std::uint32_t i = 0; i < form.pod_sets.size(); ++i) {
    const std::string& group = form.pod_sets[i].topology.group;
    const auto [it, fresh] = groups.emplace(group, form.units.size());
    if (!group.empty() && !fresh) {
      form.units[it->second].push_back(i);
      continue;
    }
    form.units.push_back({i});
  }
}

bool flavor_tolerated(const model::FlavorSpec& flavor, const model::PodSpec& pod) {
  const auto tolerated = [&](const model::Taint& taint) {
    const auto by = [&](const model::Toleration& t) { return model::tolerates(t, taint); };
    return std::any_of(pod.tolerations.begin(), pod.tolerations.end(), by) ||
           std::any_of(flavor.tolerations.begin(), flavor.tolerations.end(), by);
  };
  return std::all_of(flavor.node_taints.begin(), flavor.node_taints.end(), [&](const auto& taint) {
    return taint.effect == model::TaintEffect::kPreferNoSchedule || tolerated(taint);
  });
}

// Only keys that the flavor labels count; a term with nothing left matches anything.
bool flavor_selected(const model::FlavorSpec& flavor, const model::PodSpec& pod) {
  for (const auto& [key, value] : pod.node_selector) {
    const auto it = flavor.node_labels.find(key);
    if (it != flavor.node_labels.end() && it->second != value) return false;
  }
  if (pod.required_nodes.empty()) return true;
  return std::any_of(pod.required_nodes.begin(), pod.required_nodes.end(), [&](const auto& term) {
    return std::all_of(term.labels.begin(), term.labels.end(), [&](const auto& requirement) {
      const auto it = flavor.node_labels.find(requirement.key);
      return it == flavor.node_labels.end() ||
             text::matches_value(requirement, std::string_view(it->second));
    });
  });
}

bool has_levels(const model::TopologySpec& topology, const model::TopologyAsk& ask) {
  const auto has = [&](const std::string& level) {
    return level.empty() || std::find(topology.levels.begin(), topology.levels.end(), level) !=
                                topology.levels.end();
  };
  return has(ask.level) && std::all_of(ask.slices.begin(), ask.slices.end(),
                                       [&](const auto& slice) { return has(slice.level); });
}

Match match_one(const Book& book, const PodSet& set, FlavorId id, bool implied) {
  const model::FlavorSpec& flavor = book.flavor(id);
  if (flavor.topology.empty()) {
    if (set.topology.asks()) return Match::kNoTopology;
  } else {
    const model::TopologySpec* topology = book.topology_of(id);
    if (!set.topology.asks() && !implied) return Match::kTopology;
    if (topology == nullptr || !has_levels(*topology, set.topology)) return Match::kNoTopology;
  }
  if (!flavor_tolerated(flavor, *set.pod)) return Match::kTaint;
  return flavor_selected(flavor, *set.pod) ? Match::kYes : Match::kAffinity;
}

}  // namespace

Match match(const Book& book, const Form& form, std::uint32_t unit, FlavorId flavor, bool implied) {
  if (form.matches.empty()) form.matches.resize(form.units.size() * book.flavors().size() * 2);
  Match& known = form.matches[(unit * book.flavors().size() + flavor) * 2 + (implied ? 1 : 0)];
  if (known != Match::kUnknown) return known;
  known = Match::kYes;
  if (!form.allowed.empty() &&
      !std::binary_search(form.allowed.begin(), form.allowed.end(), book.flavor(flavor).name)) {
    return known = Match::kNotAllowed;
  }
  for (const std::uint32_t i : form.units[unit]) {
    const Match one = match_one(book, form.pod_sets[i], flavor, implied);
    if (one != Match::kYes) return known = one;
  }
  return known;
}

std::string describe_mismatch(const Book& book, const Form& form, std::uint32_t unit,
                              FlavorId flavor, Match found) {
  const model::FlavorSpec& spec = book.flavor(flavor);
  switch (found) {
    case Match::kTaint: {
      for (const auto& taint : spec.node_taints) {
        model::FlavorSpec one = spec;
        one.node_taints = {taint};
        for (const std::uint32_t i : form.units[unit]) {
          if (!flavor_tolerated(one, *form.pod_sets[i].pod)) {
            return "untolerated taint {" + taint.key + " " + taint.value + "} in flavor " +
                   spec.name;
          }
        }
      }
      return "untolerated taint in flavor " + spec.name;
    }
    case Match::kAffinity:
      return "flavor " + spec.name + " doesn't match node affinity";
    case Match::kTopology:
      return "Flavor \"" + spec.name + "\" supports only TopologyAwareScheduling";
    case Match::kNoTopology:
      if (spec.topology.empty()) {
        return "Flavor \"" + spec.name + "\" does not support TopologyAwareScheduling";
      }
      return "Flavor \"" + spec.name + "\" does not contain the requested level";
    case Match::kNotAllowed:
      return "flavor " + spec.name + " is not one of the flavors allowed for this workload";
    case Match::kUnknown:
    case Match::kYes:
      break;
  }
  return "";
}

std::shared_ptr<const Form> Forms::get(const model::WorkloadSpec& spec) {
  const auto less = std::less<const model::WorkloadSpec*>();
  const auto* first = lasting_.data();
  if (less(&spec, first) || !less(&spec, first + lasting_.size())) return make(spec);
  std::shared_ptr<const Form>& kept = of_lasting_[static_cast<std::size_t>(&spec - first)];
  if (!kept) kept = make(spec);
  return kept;
}

std::shared_ptr<const Form> Forms::make(const model::WorkloadSpec& spec) {
  auto form = std::make_shared<Form>();
  form->priority = spec.priority;
  form->allowed = spec.allowed_flavors;
  std::sort(form->allowed.begin(), form->allowed.end());
  std::string key;
  key.reserve(512);
  put(key, spec.priority);
  put(key, static_cast<std::int64_t>(form->allowed.size()));
  for (const auto& flavor : form->allowed) put(key, flavor);
  for (const auto& from : spec.pod_sets) {
    form->pod_sets.push_back(pod_set_of(book_, spec, from));
    put_pod_set(key, form->pod_sets.back());
    form->partial |= form->pod_sets.back().min_count >= 0;
  }
  auto& known = forms_[key];
  if (auto same = known.lock()) return same;
  find_units(*form);
  known = form;
  if (forms_.size() > sweep_at_) {
    std::erase_if(forms_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = std::max<std::size_t>(1024, forms_.size() * 2);
  }
  return form;
}

}  // namespace berth::admit
