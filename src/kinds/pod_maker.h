// Kinds that make pods: where their templates stand and how many pods of each they make at once,
// by which field they rest, and when they are ready and done. What a row of kind_table.h has of
// such a kind; its functions are in pod_maker.cc, one kind after the other.
//
// Pure and total: what is not written as its kind wants makes nothing. One pod set more than the
// kMostPodSets of a Workload is told, so that it can be refused; what comes after is not looked at.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/path.h"

namespace berth::kinds {

struct PodSetAt {
  std::string name;               // as Kueue has it: "worker"; of a kind with one template "main"
  std::vector<std::string> path;  // to the template, which has metadata and spec
  std::int64_t count = 0;         // pods at once, were nothing in the way
  // Where its placement is written; empty: into the template (maker_patch.h).
  std::vector<std::string> told = {};
};

enum class Ended : std::uint8_t { kNo, kSucceeded, kFailed };

// Which of Kueue's Workloads stand for what waits: one of the object, or one of each of its pods.
enum class WorkloadPer : std::uint8_t { kObject, kPod };

struct PodMaker {
  void (*pod_sets)(const text::Value& object, std::vector<PodSetAt>& out);
  WorkloadPer per = WorkloadPer::kPod;
  std::optional<text::Path> suspend = {};  // the boolean by which it rests
  std::string_view makes = "Pod";          // the kind between it and its pods
  std::string_view pods_name_it = {};      // a label of pods that it made, or had made
  std::optional<text::Path> count = {};    // where fewer pods may be asked for, of its one set
  // When it was started first; its templates may be changed until then alone. None: it does not
  // matter.
  std::optional<text::Path> started = {};
  // Of what berth itself queues as a whole (control/queue_keeper.h), else null.
  Ended (*ended)(const text::Value& object) = nullptr;
  int (*ready)(const text::Value& object) = nullptr;   // pods that are, or have succeeded
  int (*active)(const text::Value& object) = nullptr;  // pods that there may be; 0: none are left

  bool queued() const { return ended != nullptr; }
};

// Those of the table, by what is special about each.
extern const PodMaker kJobMaker, kVolcanoJobMaker, kCronJobMaker, kReplicasMaker, kDeploymentMaker,
    kJobSetMaker, kAppWrapperMaker, kLeaderWorkerSetMaker, kRayJobMaker, kRayClusterMaker,
    kRayServiceMaker, kPyTorchJobMaker, kMpiJobMaker, kTfJobMaker, kXgBoostJobMaker,
    kPaddleJobMaker, kJaxJobMaker, kTrainJobMaker, kSparkApplicationMaker;

// Its pod sets that have a template; what makes no pods has none.
std::vector<PodSetAt> pod_sets_of(const PodMaker& maker, const text::Value& object);
bool rests(const PodMaker& maker, const text::Value& object);  // by its field
std::string set_name(std::string_view text);                   // a name as pod sets have it
// What stands at the end of keys and indexes; null: nothing does.
const text::Value* value_at(const text::Value& root, const std::vector<std::string>& path);

}  // namespace berth::kinds
