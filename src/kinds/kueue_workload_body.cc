#include "kinds/kueue_workload_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "kinds/resources.h"
#include "text/path.h"

namespace berth::kinds {

using text::JsonWriter;
using text::Value;

namespace {

void write_topology_request(JsonWriter& out, const model::TopologyAsk& ask) {
  using Mode = model::TopologyAsk::Mode;
  if (!ask.asks()) return;
  out.object("topologyRequest", [&] {
    if (ask.mode == Mode::kRequired) out.field("required", ask.level);
    if (ask.mode == Mode::kPreferred) out.field("preferred", ask.level);
    if (ask.mode == Mode::kUnconstrained) out.field("unconstrained", true);
    if (!ask.group.empty()) out.field("podSetGroupName", ask.group);
    if (ask.slices.size() == 1) {
      out.field("podSetSliceRequiredTopology", ask.slices.front().level);
      out.field("podSetSliceSize", ask.slices.front().size);
    } else if (!ask.slices.empty()) {
      out.array("podsetSliceRequiredTopologyConstraints", [&] {
        for (const auto& slice : ask.slices) {
          out.object([&] {
            out.field("topology", slice.level);
            out.field("size", slice.size);
          });
        }
      });
    }
  });
}

// A pod as a template: what the API server put there for this one pod is left out.
void write_pod_as_template(JsonWriter& out, const Value& pod) {
  out.object([&] {
    out.object("metadata", [&] {
      for (const std::string_view key : {"labels", "annotations"}) {
        const Value* found = pod["metadata"].find(key);
        if (found != nullptr && found->size() > 0) out.field(key, *found);
      }
    });
    out.object("spec", [&] {
      const Value* spec = pod.find("spec");
      if (spec != nullptr) {
        for (const text::Member& member : spec->members()) {
          if (member.key == "nodeName" || member.key == "schedulingGates") continue;
          out.field(member.key, member.value);
        }
      }
    });
  });
}

void write_class(JsonWriter& out, std::string_view priority_class) {
  out.object("priorityClassRef", [&] {
    out.field("group", "kueue.x-k8s.io");
    out.field("kind", "WorkloadPriorityClass");
    out.field("name", priority_class);
  });
}

void write_owners(JsonWriter& out, std::span<const Owner> owners) {
  out.array("ownerReferences", [&] {
    for (const Owner& owner : owners) {
      out.object([&] {
        out.field("apiVersion", owner.api_version);
        out.field("kind", owner.kind);
        out.field("name", owner.name);
        out.field("uid", owner.uid);
        if (owner.controller) {
          out.field("controller", true);
          out.field("blockOwnerDeletion", true);
        }
      });
    }
  });
}

}  // namespace

std::string workload_name(std::string_view kind, std::string_view name, std::string_view uid) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (const std::string_view part : {kind, name, uid}) {
    for (const char c : part) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    h = (h ^ 0xff) * 0x100000001b3u;
  }
  std::string out;
  for (const char c : kind) out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  out += '-';
  out += name.substr(0, 200);
  return fmt::format("{}-{:05x}", out, h & 0xfffff);
}

std::string workload_body(const model::WorkloadSpec& spec, const std::string& name,
                          std::span<const Owner> owners,
                          const std::vector<PodSetTemplate>& templates,
                          const std::string& priority_class) {
  JsonWriter out;
  out.object([&] {
    out.field("apiVersion", "kueue.x-k8s.io/v1beta2");
    out.field("kind", "Workload");
    out.object("metadata", [&] {
      out.field("name", name);
      out.field("namespace", spec.ns);
      if (owners.size() == 1) {
        out.object("labels", [&] { out.field("kueue.x-k8s.io/job-uid", owners.front().uid); });
      }
      if (!spec.replaces.empty()) {
        out.object("annotations", [&] {
          out.field("kueue.x-k8s.io/workload-slice-replacement-for", spec.replaces);
        });
      }
      write_owners(out, owners);
    });
    out.object("spec", [&] {
      out.field("active", true);
      out.field("queueName", spec.queue);
      out.field("priority", spec.priority);
      if (!priority_class.empty()) write_class(out, priority_class);
      if (spec.max_execution_s > 0) out.field("maximumExecutionTimeSeconds", spec.max_execution_s);
      out.array("podSets", [&] {
        for (std::size_t i = 0; i < spec.pod_sets.size() && i < templates.size(); ++i) {
          const model::PodSetSpec& set = spec.pod_sets[i];
          out.object([&] {
            out.field("name", set.name);
            out.field("count", set.count);
            if (set.min_count) out.field("minCount", *set.min_count);
            write_topology_request(out, set.topology);
            out.key("template");
            if (templates[i].whole_pod) {
              write_pod_as_template(out, *templates[i].pod_template);
            } else {
              out.value(*templates[i].pod_template);
            }
          });
        }
      });
    });
  });
  return std::move(out).take();
}

std::string move_patch(std::string_view queue, std::string_view priority_class) {
  JsonWriter out;
  out.object([&] {
    out.object("spec", [&] {
      if (!queue.empty()) out.field("queueName", queue);
      if (!priority_class.empty()) write_class(out, priority_class);
    });
  });
  return std::move(out).take();
}

std::string owners_patch(std::span<const Owner> owners) {
  JsonWriter out;
  out.object([&] { out.object("metadata", [&] { write_owners(out, owners); }); });
  return std::move(out).take();
}

std::string annotation_patch(std::string_view key, std::string_view value) {
  JsonWriter out;
  out.object([&] {
    out.object("metadata", [&] { out.object("annotations", [&] { out.field(key, value); }); });
  });
  return std::move(out).take();
}

std::string seats_text(std::span<const model::WorkloadSpec::Seat> places) {
  std::map<std::string_view, std::vector<const model::WorkloadSpec::Seat*>> sets;
  for (const model::WorkloadSpec::Seat& place : places) sets[place.pod_set].push_back(&place);
  JsonWriter out;
  out.object([&] {
    for (const auto& [set, list] : sets) {
      out.array(set, [&] {
        for (const model::WorkloadSpec::Seat* place : list) {
          out.object([&] {
            out.field("node", place->node);
            if (!place->gpus.empty()) {
              out.array("gpus", [&] {
                for (const int gpu : place->gpus) out.value(gpu);
              });
            }
          });
        }
      });
    }
  });
  return std::move(out).take();
}

void write_admission(JsonWriter& out, const model::Admission& admission) {
  out.object([&] {
    out.field("clusterQueue", admission.queue);
    out.array("podSetAssignments", [&] {
      for (const model::PodSetAdmission& set : admission.pod_sets) {
        out.object([&] {
          out.field("name", set.name);
          out.field("count", set.count);
          out.object("flavors", [&] {
            for (const auto& [resource, flavor] : set.flavors) out.field(resource, flavor);
          });
          out.object("resourceUsage", [&] {
            for (const auto& [resource, amount] : set.usage) {
              out.field(resource, amount_text(resource, amount));
            }
          });
          if (set.topology) {
            out.key("topologyAssignment");
            write_topology_assignment(*set.topology, KueueVersion::kV1beta2, out);
          }
        });
      }
    });
  });
}

}  // namespace berth::kinds
