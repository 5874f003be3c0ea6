#include "kinds/kueue_convert.h"

#include <algorithm>
#include <array>
#include <vector>

#include "kinds/kueue_pack.h"
#include "text/json_writer.h"
#include "text/path.h"

namespace berth::kinds {

namespace {

using text::JsonWriter;
using text::Member;
using text::Value;

struct PriorityClassForm {
  std::string_view source;       // v1beta1
  std::string_view group, kind;  // v1beta2
};
constexpr std::array<PriorityClassForm, 2> kPriorityClassForms = {{
    {"kueue.x-k8s.io/workloadpriorityclass", "kueue.x-k8s.io", "WorkloadPriorityClass"},
    {"scheduling.k8s.io/priorityclass", "scheduling.k8s.io", "PriorityClass"},
}};

// Names that may stand in a list with the name as its key.
bool different_names(const Value& list) {
  std::vector<std::string_view> names;
  for (const Value& name : list.items()) {
    if (!name.is_string()) return false;
    names.push_back(name.string());
  }
  std::sort(names.begin(), names.end());
  return !names.empty() && std::adjacent_find(names.begin(), names.end()) == names.end();
}

class KueueConverter {
 public:
  explicit KueueConverter(KueueVersion to) : up_(to == KueueVersion::kV1beta2) {}

  std::string run(const Value& object) {
    const std::string_view kind = text_at(object, "kind");
    queue_ = kind == "ClusterQueue";
    local_queue_ = kind == "LocalQueue";
    workload_ = kind == "Workload";
    cluster_ = kind == "MultiKueueCluster";
    out_.object([&] {
      for (const Member& member : object.members()) {
        out_.key(member.key);
        if (member.key == "apiVersion") {
          out_.value(std::string(kKueueGroup) + (up_ ? "/v1beta2" : "/v1beta1"));
        } else if (member.key == "spec" && member.value.is_object()) {
          spec(member.value);
        } else if (member.key == "status" && member.value.is_object()) {
          status(member.value);
        } else {
          out_.value(member.value);
        }
      }
    });
    return std::move(out_).take();
  }

 private:
  // A field that is called otherwise in the version that is written. Both names in one object with
  // one value are the new name; with two values they stay.
  void renamed(const Value& in, const Member& member, std::string_view first,
               std::string_view second) {
    const std::string_view from = up_ ? first : second, to = up_ ? second : first;
    const Value* taken = member.key == from ? in.find(to) : nullptr;
    if (member.key != from) return out_.field(member.key, member.value);
    if (taken == nullptr) return out_.field(to, member.value);
    if (!text::equal(*taken, member.value)) out_.field(from, member.value);
  }

  void spec(const Value& v) {
    if (workload_) return workload_spec(v);
    if (cluster_) return cluster_spec(v);
    out_.object([&] {
      for (const Member& member : v.members()) {
        if (queue_) {
          queue_field(v, member);
        } else {
          out_.field(member.key, member.value);
        }
      }
    });
  }

  void queue_field(const Value& v, const Member& member) {
    if (up_ && member.key == "admissionChecks" && different_names(member.value) &&
        v.find("admissionChecksStrategy") == nullptr) {
      out_.object("admissionChecksStrategy", [&] {
        out_.array("admissionChecks", [&] {
          for (const Value& name : member.value.items()) {
            out_.object([&] { out_.field("name", name); });
          }
        });
      });
    } else if (up_ && member.key == "flavorFungibility" && member.value.is_object()) {
      out_.object(member.key, [&] {
        for (const Member& rule : member.value.members()) {
          const std::string_view word = rule.value.string();
          const bool stops = (rule.key == "whenCanBorrow" && word == "Borrow") ||
                             (rule.key == "whenCanPreempt" && word == "Preempt");
          out_.key(rule.key);
          if (stops) {
            out_.value("MayStopSearch");
          } else {
            out_.value(rule.value);
          }
        }
      });
    } else {
      renamed(v, member, "cohort", "cohortName");
    }
  }

  // The form of the class where the other version can say the same.
  const PriorityClassForm* class_form(const Value& v) const {
    const Value* ref = v.find("priorityClassRef");
    const Value* name = v.find("priorityClassName");
    const Value* source = v.find("priorityClassSource");
    if (up_ ? ref != nullptr || text_at(v, "priorityClassName").empty()
            : name != nullptr || source != nullptr || ref == nullptr || ref->size() != 3 ||
                  text_at(*ref, "name").empty()) {
      return nullptr;
    }
    for (const PriorityClassForm& form : kPriorityClassForms) {
      if (up_ ? text_at(v, "priorityClassSource") == form.source
              : text_at(*ref, "group") == form.group && text_at(*ref, "kind") == form.kind) {
        return &form;
      }
    }
    return nullptr;
  }

  void workload_spec(const Value& v) {
    const PriorityClassForm* form = class_form(v);
    out_.object([&] {
      for (const Member& member : v.members()) {
        if (form != nullptr && up_ && member.key == "priorityClassSource") continue;
        if (form != nullptr && up_ && member.key == "priorityClassName") {
          out_.object("priorityClassRef", [&] {
            out_.field("group", form->group);
            out_.field("kind", form->kind);
            out_.field("name", member.value);
          });
        } else if (form != nullptr && !up_ && member.key == "priorityClassRef") {
          out_.field("priorityClassName", text_at(member.value, "name"));
          out_.field("priorityClassSource", form->source);
        } else {
          out_.field(member.key, member.value);
        }
      }
    });
  }

  // How a cluster is reached: beside the rest, or in a field of its own.
  static bool is_way(std::string_view key) {
    return key == "kubeConfig" || key == "clusterProfileRef";
  }

  void cluster_spec(const Value& v) {
    const Value* source = v.find("clusterSource");
    const auto way = [](const Member& member) { return is_way(member.key); };
    const auto members = v.members();
    const bool flat = std::any_of(members.begin(), members.end(), way);
    const bool moves =
        up_ ? flat && source == nullptr
            : !flat && source != nullptr && !source->members().empty() &&
                  std::all_of(source->members().begin(), source->members().end(), way);
    bool moved = false;
    out_.object([&] {
      for (const Member& member : members) {
        if (!moves || (up_ ? !is_way(member.key) : member.key != "clusterSource")) {
          out_.field(member.key, member.value);
          continue;
        }
        if (std::exchange(moved, true)) continue;
        const auto ways = [&] {
          for (const Member& one : up_ ? members : source->members()) {
            if (is_way(one.key)) out_.field(one.key, one.value);
          }
        };
        if (!up_) {
          ways();
        } else {
          out_.object("clusterSource", ways);
        }
      }
    });
  }

  void status(const Value& v) {
    out_.object([&] {
      for (const Member& member : v.members()) {
        if (workload_ && member.key == "admission" && member.value.is_object()) {
          admission(member.value);
        } else if (workload_) {
          renamed(v, member, "accumulatedPastExexcutionTimeSeconds",
                  "accumulatedPastExecutionTimeSeconds");
        } else if (local_queue_) {
          renamed(v, member, "flavorUsage", "flavorsUsage");
        } else {
          out_.field(member.key, member.value);
        }
      }
    });
  }

  void admission(const Value& v) {
    out_.object("admission", [&] {
      for (const Member& member : v.members()) {
        out_.key(member.key);
        if (member.key != "podSetAssignments" || !member.value.is_array()) {
          out_.value(member.value);
          continue;
        }
        out_.array([&] {
          for (const Value& set : member.value.items()) assignment(set);
        });
      }
    });
  }

  void assignment(const Value& set) {
    if (!set.is_object()) return out_.value(set);
    out_.object([&] {
      for (const Member& part : set.members()) {
        out_.key(part.key);
        if (part.key != "topologyAssignment") {
          out_.value(part.value);
        } else if (up_) {
          pack_domains(part.value, out_);
        } else {
          unpack_slices(part.value, growth_, out_);
        }
      }
    });
  }

  bool up_;
  bool queue_ = false, local_queue_ = false, workload_ = false, cluster_ = false;
  std::size_t growth_ = kMostUnpackedBytes;
  JsonWriter out_;
};

}  // namespace

std::optional<KueueVersion> kueue_version(std::string_view api_version) {
  if (!api_version.starts_with(kKueueGroup)) return std::nullopt;
  const std::string_view version = api_version.substr(kKueueGroup.size());
  if (version == "/v1beta1") return KueueVersion::kV1beta1;
  if (version == "/v1beta2") return KueueVersion::kV1beta2;
  return std::nullopt;
}

bool kueue_versions_differ(std::string_view kind) {
  return kind == "ClusterQueue" || kind == "LocalQueue" || kind == "Workload" ||
         kind == "MultiKueueCluster";
}

bool kueue_unconverted(const Value& object) {
  const Value* metadata = object.find("metadata");
  if (metadata == nullptr || text_at(*metadata, "resourceVersion").empty()) return false;
  for (const text::Path& old : std::initializer_list<text::Path>{
           "spec.cohort", "spec.admissionChecks", "spec.priorityClassName",
           "status.accumulatedPastExexcutionTimeSeconds", "status.flavorUsage"}) {
    if (find(object, old) != nullptr) return true;
  }
  bool any = false;
  for_each(object, "status.admission.podSetAssignments[*].topologyAssignment.domains",
           [&any](const Value&) { any = true; });
  return any;
}

std::string convert_kueue(const Value& object, KueueVersion to) {
  return KueueConverter(to).run(object);
}

}  // namespace berth::kinds
