#include "objects/kueue_convert.h"

#include <algorithm>

#include "objects/kueue_workload.h"
#include "text/json_writer.h"

namespace berth::objects {

namespace {

using text::JsonWriter;
using text::Member;
using text::Value;

constexpr std::string_view kGroup = "kueue.x-k8s.io";
constexpr std::string_view kWorkloadSource = "kueue.x-k8s.io/workloadpriorityclass";
constexpr std::string_view kPodSource = "scheduling.k8s.io/priorityclass";

class KueueConverter {
 public:
  explicit KueueConverter(KueueVersion to) : up_(to == KueueVersion::kV1beta2) {}

  std::string run(const Value& object) {
    kind_ = object.find("kind") == nullptr ? "" : object.find("kind")->string();
    out_.begin_object();
    for (const Member& member : object.members()) {
      out_.key(member.key);
      if (member.key == "apiVersion") {
        out_.value(std::string(kGroup) + (up_ ? "/v1beta2" : "/v1beta1"));
      } else if (member.key == "spec" && member.value.is_object()) {
        spec(member.value);
      } else if (member.key == "status" && member.value.is_object()) {
        status(member.value);
      } else {
        out_.value(member.value);
      }
    }
    out_.end_object();
    return std::move(out_).take();
  }

 private:
  // The name of a field in the version that is written.
  std::string_view renamed(std::string_view key, std::string_view old_name,
                           std::string_view new_name) const {
    if (up_) return key == old_name ? new_name : key;
    return key == new_name ? old_name : key;
  }

  void spec(const Value& v) {
    out_.begin_object();
    for (const Member& member : v.members()) {
      if (kind_ == "ClusterQueue") {
        queue_field(v, member);
      } else if (kind_ == "Workload") {
        workload_field(v, member);
      } else {
        out_.field(member.key, member.value);
      }
    }
    out_.end_object();
  }

  void queue_field(const Value& v, const Member& member) {
    if (up_ && member.key == "admissionChecks") {
      if (v.find("admissionChecksStrategy") != nullptr) return;
      out_.key("admissionChecksStrategy");
      out_.begin_object();
      out_.key("admissionChecks");
      out_.begin_array();
      for (const Value& name : member.value.items()) {
        out_.begin_object();
        out_.field("name", name);
        out_.end_object();
      }
      out_.end_array();
      out_.end_object();
    } else if (up_ && member.key == "flavorFungibility") {
      out_.key(member.key);
      out_.begin_object();
      for (const Member& rule : member.value.members()) {
        const bool stops = rule.value.string() == "Borrow" || rule.value.string() == "Preempt";
        out_.key(rule.key);
        if (stops) {
          out_.value("MayStopSearch");
        } else {
          out_.value(rule.value);
        }
      }
      out_.end_object();
    } else {
      out_.field(renamed(member.key, "cohort", "cohortName"), member.value);
    }
  }

  void workload_field(const Value& v, const Member& member) {
    if (up_ && member.key == "priorityClassSource") return;
    if (up_ && member.key == "priorityClassName") {
      const Value* source = v.find("priorityClassSource");
      const bool pod = source != nullptr && source->string() == kPodSource;
      if (member.value.string().empty()) return;
      out_.key("priorityClassRef");
      out_.begin_object();
      out_.field("group", pod ? "scheduling.k8s.io" : kGroup);
      out_.field("kind", pod ? "PriorityClass" : "WorkloadPriorityClass");
      out_.field("name", member.value);
      out_.end_object();
    } else if (!up_ && member.key == "priorityClassRef") {
      const Value* kind = member.value.find("kind");
      const Value* name = member.value.find("name");
      const bool pod = kind != nullptr && kind->string() == "PriorityClass";
      if (name != nullptr) out_.field("priorityClassName", *name);
      out_.field("priorityClassSource", pod ? kPodSource : kWorkloadSource);
    } else if (!up_ && member.key == "podSets") {
      out_.key(member.key);
      out_.begin_array();
      for (const Value& set : member.value.items()) pod_set_down(set);
      out_.end_array();
    } else {
      out_.field(member.key, member.value);
    }
  }

  void pod_set_down(const Value& set) {
    out_.begin_object();
    for (const Member& member : set.members()) {
      if (member.key != "topologyRequest") {
        out_.field(member.key, member.value);
        continue;
      }
      out_.key(member.key);
      out_.begin_object();
      for (const Member& part : member.value.members()) {
        if (part.key == "podsetSliceRequiredTopologyConstraints") continue;
        out_.field(part.key, part.value);
      }
      out_.end_object();
    }
    out_.end_object();
  }

  void status(const Value& v) {
    out_.begin_object();
    for (const Member& member : v.members()) {
      if (kind_ == "Workload" && member.key == "admission" && member.value.is_object()) {
        admission(member.value);
      } else if (kind_ == "Workload") {
        out_.field(renamed(member.key, "accumulatedPastExexcutionTimeSeconds",
                           "accumulatedPastExecutionTimeSeconds"),
                   member.value);
      } else if (kind_ == "LocalQueue") {
        out_.field(renamed(member.key, "flavorUsage", "flavorsUsage"), member.value);
      } else {
        out_.field(member.key, member.value);
      }
    }
    out_.end_object();
  }

  void admission(const Value& v) {
    out_.key("admission");
    out_.begin_object();
    for (const Member& member : v.members()) {
      if (member.key != "podSetAssignments") {
        out_.field(member.key, member.value);
        continue;
      }
      out_.key(member.key);
      out_.begin_array();
      for (const Value& set : member.value.items()) {
        out_.begin_object();
        for (const Member& part : set.members()) {
          out_.key(part.key);
          if (part.key == "topologyAssignment" && part.value.is_object()) {
            topology(part.value);
          } else {
            out_.value(part.value);
          }
        }
        out_.end_object();
      }
      out_.end_array();
    }
    out_.end_object();
  }

  void topology(const Value& v) {
    std::optional<model::TopologyAssignment> read;
    text::Decoder d;
    read_topology_assignment(v, up_ ? KueueVersion::kV1beta1 : KueueVersion::kV1beta2, read, d);
    if (!d.ok() || !read) return out_.value(v);  // what cannot be read stays as it is
    write_topology_assignment(*read, up_ ? KueueVersion::kV1beta2 : KueueVersion::kV1beta1, out_);
  }

  bool up_;
  std::string_view kind_;
  JsonWriter out_;
};

}  // namespace

std::string convert_kueue(const Value& object, KueueVersion to) {
  return KueueConverter(to).run(object);
}

}  // namespace berth::objects
