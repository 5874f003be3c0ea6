// batch/v1 Job: the pods it would have.
//
// A Job is a gang of its parallelism when it carries the annotation berth.dev/gang: "true", or asks
// for a topology (on itself or on its template): a domain is only a promise for all together. With
// a group named on its template its pods are members of that group instead.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kinds/pod.h"

namespace berth::kinds {

inline constexpr int kMaxJobPods = 100'000;

struct JobObject {
  Meta meta;
  int parallelism = 1;
  std::optional<int> completions;
  bool suspend = false, indexed = false;
  bool finished = false;  // condition Complete or Failed
  int succeeded = 0;
  bool gang = false;  // berth.dev/gang
  TopologyRequest topology;
  PodObject pod;  // the template

  // How many pods would run at once from here on.
  int wanted() const;
  int parallel() const;  // wanted() as if it were not suspended
  bool is_gang() const;
};
void decode(const text::Value& v, JobObject& out, text::Decoder& d);

// The pods that the job still lacks: wanted() less the active ones, named <job>-<index>.
// existing: the pods whose controller is this job. taken: names in the namespace.
std::vector<PodObject> missing_pods(const JobObject& job,
                                    std::span<const PodObject* const> existing,
                                    const std::set<std::string, std::less<>>& taken);

}  // namespace berth::kinds
