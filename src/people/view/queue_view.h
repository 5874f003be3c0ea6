// The queues as people look at them: quota, use, what is borrowed, who waits and why.
//
// For `berth queue`, status and the page; pure. Use and order are those before any new decision;
// reasons are those of the plan made of the same inputs. Queues by name, lines by position.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kinds/manifest.h"
#include "people/view/plan.h"

namespace berth::people {

struct QueueLine {
  int position = 0;      // from 1; 0: not in line (held back)
  std::string workload;  // "ns/name"
  std::string owner;     // "Job/train", or empty
  int priority = 0, pods = 0;
  std::int64_t gpus_milli = 0;                  // of all its pods
  std::int64_t ahead_milli = 0;                 // GPUs of those in front of it
  std::int64_t since_ns = 0;                    // 0: not known
  model::Reason reason = model::Reason::kNone;  // kNone: it starts now
  std::string message;
};

struct QueueRow {
  std::string name, cohort;
  std::string inactive;  // why it admits nothing, or empty
  std::vector<model::QueueUse::Cell> cells;
  // Of all its GPU resources together; where it covers none, of has_gpus = false everything is 0.
  bool has_gpus = false;
  std::int64_t nominal = 0, used = 0, borrowed = 0;  // nominal INT64_MAX: unlimited
  int admitted = 0;
  std::int64_t oldest_ns = 0;             // of those that wait; 0: none, or not known
  std::vector<std::string> local_queues;  // "ns/name"
  std::vector<QueueLine> waiting;         // in order, those held back last
};

struct QueueView {
  std::int64_t now_ns = 0;
  std::vector<QueueRow> queues;
  std::vector<QueueLine> nowhere;  // of queues that do not exist
};

QueueView make_queue_view(const kinds::Inputs& inputs, const PlanResult& plan, std::int64_t now_ns);

std::string queue_view_json(const QueueView& view, int indent);

}  // namespace berth::people
