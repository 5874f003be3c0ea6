// An object of a kind that waits in queues as a whole (PodMaker::queued()), other than a Job, which
// has a reader of its own for what else it can: its pod sets with their templates, whether it
// rests, and how it ended.
#pragma once

#include <string>
#include <vector>

#include "kinds/kind_table.h"
#include "kinds/pod.h"

namespace berth::kinds {

struct QueuedMaker {
  struct Set {
    std::string name;
    std::vector<std::string> path;  // to the template
    int count = 0;
    PodObject pod;
  };
  Meta meta;
  std::string owner;      // as those it makes name it: "JobSet/train"
  std::vector<Set> sets;  // those that make pods
  bool rests = false;
  bool unread = false;  // what it makes waits until it is corrected; it has no sets
  Ended ended = Ended::kNo;
};
inline const std::string& name_of(const QueuedMaker& maker) { return maker.owner; }

// Errors: more than kMostPodSets sets or kMaxJobPods pods, a name of a set that is no DNS label or
// is there twice, a set whose template is not there.
void decode_queued_maker(const text::Value& v, const PodMaker& maker, QueuedMaker& out,
                         text::Decoder& d);

}  // namespace berth::kinds
