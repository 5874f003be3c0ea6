#include "kinds/kept.h"

#include <algorithm>

namespace berth::kinds {

namespace {

using text::JsonWriter;
using text::Member;
using text::Value;

constexpr std::string_view kLastAppliedNote = "kubectl.kubernetes.io/last-applied-configuration";
constexpr std::string_view kLeftOut = "(left out)";

// Whole, and what stands before the slash of others.
constexpr std::string_view kKnownNotes[] = {"gpu-fraction", "gpu-fraction-num-devices",
                                            "pod-group-name", "gpu-memory"};
constexpr std::string_view kKnownDomains[] = {
    "autoscaling.x-k8s.io",
    "batch.kubernetes.io",
    "berth.dev",
    "cluster-autoscaler.kubernetes.io",
    "controller-gen.kubebuilder.io",
    "controller.kubernetes.io",
    "deployment.kubernetes.io",
    "jobset.sigs.k8s.io",
    "kai.scheduler",
    "karpenter.sh",
    "kueue.x-k8s.io",
    "nvidia.com",
    "pv.kubernetes.io",
    "run.ai",
    "scheduler.alpha.kubernetes.io",
    "scheduling.k8s.io",
    "scheduling.run.ai",
    "scheduling.volcano.sh",
    "scheduling.x-k8s.io",
    "sim.berth.dev",
    "storageclass.beta.kubernetes.io",
    "storageclass.kubernetes.io",
    "volcano.sh",
    "volume.kubernetes.io",
    "workload.codeflare.dev",
};

bool says_gpus(std::string_view variable) {
  return variable.starts_with("NVIDIA_") || variable.starts_with("CUDA_") ||
         variable.starts_with("NCCL_");
}

template <std::size_t N>
bool is_one_of(const std::string_view (&list)[N], std::string_view key) {
  return std::find(std::begin(list), std::end(list), key) != std::end(list);
}

// By name and kind of value: a label may be called "command" too.
bool may_hold_secrets(const Member& member) {
  constexpr std::string_view kLists[] = {"args", "command", "mountOptions"};
  constexpr std::string_view kObjects[] = {"lifecycle",    "livenessProbe",    "readinessProbe",
                                           "startupProbe", "volumeAttributes", "options",
                                           "parameters"};
  return (member.value.is_array() && is_one_of(kLists, member.key)) ||
         (member.value.is_object() && is_one_of(kObjects, member.key));
}

void write_any(JsonWriter& out, const Value& v, const KeepOptions& options);

void write_variables(JsonWriter& out, const Value& list, const KeepOptions& options) {
  out.array([&] {
    for (const Value& variable : list.items()) {
      if (!variable.is_object()) {
        out.value(kLeftOut);
        continue;
      }
      const Value* name = variable.find("name");
      const bool open = name != nullptr && says_gpus(name->string());
      out.object([&] {
        for (const Member& member : variable.members()) {
          out.key(member.key);
          if (member.key == "value" && !open) {
            out.value(kLeftOut);
          } else {
            write_any(out, member.value, options);
          }
        }
      });
    }
  });
}

void write_notes(JsonWriter& out, const Value& notes, const KeepOptions& options) {
  out.object([&] {
    for (const Member& note : notes.members()) {
      if (note.key == kLastAppliedNote) continue;
      if (options.arguments || is_known_annotation(note.key)) out.field(note.key, note.value);
    }
  });
}

// A whole object inside another one (an AppWrapper's): of a Secret or a ConfigMap what it holds is
// nobody's to read.
bool is_whole_object(const Value& v) {
  return v.is_object() && v.find("kind") != nullptr && v.find("apiVersion") != nullptr;
}

void write_inner_object(JsonWriter& out, const Value& object, const KeepOptions& options) {
  constexpr std::string_view kHeld[] = {"data", "stringData", "binaryData"};
  out.object([&] {
    for (const Member& member : object.members()) {
      if (!is_one_of(kHeld, member.key)) write_kept(out, member, options);
    }
  });
}

// What a program wrote before it ended is the program's; why it did not start is the runtime's.
void write_ending(JsonWriter& out, const Value& ending, const KeepOptions& options) {
  const Value* reason = ending.find("reason");
  const std::string_view why = reason == nullptr ? std::string_view() : reason->string();
  const bool never_ran = why == "StartError" || why == "ContainerCannotRun" ||
                         why == "CreateContainerError" || why == "ContainerStatusUnknown";
  out.object([&] {
    for (const Member& member : ending.members()) {
      if (member.key == "message" && !never_ran) continue;
      write_kept(out, member, options);
    }
  });
}

void write_any(JsonWriter& out, const Value& v, const KeepOptions& options) {
  if (v.is_object()) {
    write_kept(out, v, options);
  } else if (v.is_array()) {
    out.array([&] {
      for (const Value& item : v.items()) write_any(out, item, options);
    });
  } else {
    out.value(v);
  }
}

}  // namespace

bool is_known_annotation(std::string_view key) {
  const std::size_t slash = key.find('/');
  return slash == std::string_view::npos ? is_one_of(kKnownNotes, key)
                                         : is_one_of(kKnownDomains, key.substr(0, slash));
}

void write_kept(JsonWriter& out, const Member& member, const KeepOptions& options) {
  const bool list = member.value.is_array(), object = member.value.is_object();
  if (member.key == "managedFields" || member.key == "openAPIV3Schema" ||
      member.key == kLastAppliedNote) {
    return;
  }
  if (!options.node_images && list && member.key == "images") return;
  if (!options.arguments && may_hold_secrets(member)) return;
  out.key(member.key);
  if (list && member.key == "env") {
    write_variables(out, member.value, options);
  } else if (object && member.key == "annotations") {
    write_notes(out, member.value, options);
  } else if (member.key == "template" && is_whole_object(member.value)) {
    write_inner_object(out, member.value, options);
  } else if (object && !options.arguments && member.key == "terminated") {
    write_ending(out, member.value, options);
  } else {
    write_any(out, member.value, options);
  }
}

void write_kept(JsonWriter& out, const Value& object, const KeepOptions& options) {
  out.object([&] {
    for (const Member& member : object.members()) write_kept(out, member, options);
  });
}

}  // namespace berth::kinds
