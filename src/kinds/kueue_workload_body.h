// Kueue's Workload (v1beta2) as it is written: kueue_workload.h reads it, and a property holds the
// two together (kueue_workload_body_test.cc). Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/kueue_workload.h"
#include "kinds/meta.h"
#include "model/decision.h"
#include "text/json_writer.h"
#include "text/value.h"

namespace berth::kinds {

// "job-train-5f2a1": as Kueue names it, by kind, name and a hash of the UID.
std::string workload_name(std::string_view kind, std::string_view name, std::string_view uid);

struct PodSetTemplate {
  const text::Value* pod_template = nullptr;  // {metadata, spec}, or a whole pod
  bool whole_pod = false;
};
// The object that stands for a workload of the queue. templates: one for each pod set.
std::string workload_body(const model::WorkloadSpec& spec, const std::string& name,
                          std::span<const Owner> owners,
                          const std::vector<PodSetTemplate>& templates,
                          const std::string& priority_class);

// Merge patches of it: its owners are these; it waits in that LocalQueue, or with that
// WorkloadPriorityClass ("": as before).
std::string owners_patch(std::span<const Owner> owners);
std::string move_patch(std::string_view queue, std::string_view priority_class);
// One annotation of an object, as a merge patch.
std::string annotation_patch(std::string_view key, std::string_view value);

// status.admission.
void write_admission(text::JsonWriter& out, const model::Admission& admission);

// Where the pods of an admitted workload are to run, by pod set: the message of the condition
// berth.dev/Placed, or the annotation berth.dev/seats where it is longer than a message may be.
inline constexpr std::size_t kMostConditionMessage = 32'768;
std::string seats_text(std::span<const model::WorkloadSpec::Seat> seats);

}  // namespace berth::kinds
