// Kueue's queues, flavors and Configuration, and the namespaces they speak of.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "kinds/object_set.h"
#include "kinds/queue_marks.h"
#include "kinds/resolve/resolution.h"

namespace berth::kinds {

class KnownQueues : private Part {
 public:
  using Locals = std::map<std::string, std::string, std::less<>>;  // ClusterQueue by LocalQueue

  explicit KnownQueues(Resolution& all);

  bool decide() const { return decide_; }            // a ClusterQueue is there
  bool look_after_pods() const { return of_pods_; }  // its integration is on
  QueueDemands demands() const;

  const model::FlavorSpec* flavor_named(const std::string& name) const;  // null: there is none
  const model::QueueSpec* queue_named(const std::string& name) const;    // the same
  bool covers(const std::string& queue, const std::string& resource) const;
  bool is_open_to(const std::string& queue, const std::string& ns) const;  // a ClusterQueue
  // The priority of a class of workloads; absent when there is none of that name.
  std::optional<int> workload_class(const std::string& name) const;

  // Whether Kueue looks after what a namespace holds without being asked by a label.
  bool managed(const std::string& ns) const;
  // Whether nothing may start there outside of queues: by the namespace's label, or because Kueue's
  // Configuration says so.
  bool requires_queue(const std::string& ns) const;
  bool requires_queue(const model::PodSpec& pod) const;
  bool some_require() const;  // false: no namespace does

  std::optional<std::string> default_queue_of(const Meta& meta) const;  // or label; absent: neither
  std::string default_queue(const Meta& meta) const;  // of a pod that names none, or ""
  bool has_default(const std::string& ns) const { return defaults_.contains(ns); }
  const Locals* locals(const std::string& ns) const;  // null: none, or nobody decides by them
  // One of the namespace that leads to the queue; "": none does.
  std::string local_to(const std::string& queue, const std::string& ns) const;
  // What a workload's pods are charged to; "": its LocalQueue is not there.
  std::string kueue_charge(const model::WorkloadSpec& workload) const;
  // Of a holder that cannot be read in full: what it does not say of its queue and amounts.
  void fill_admission(model::WorkloadSpec& spec) const;

  // Nobody decides about what names a queue; once.
  static constexpr std::string_view kNobodyDecides =
      "it names a Kueue queue and the input has no ClusterQueue: it and others like it start "
      "without one";
  void say_no_queues(const Origin& at, const std::string& shown,
                     std::string_view message = kNobodyDecides);

 private:
  void read_configuration();
  void take_over();
  void read_namespaces();
  bool selects(const text::Selector& selector, const std::string& ns) const;

  bool decide_ = false, of_pods_ = true, said_no_queues_ = false;
  std::optional<text::Selector> managed_;
  // By name: places in out_.queues.
  std::map<std::string, std::size_t, std::less<>> queue_at_, flavor_at_;
  std::map<std::string, int, std::less<>> classes_;
  NameSet defaults_;                                   // namespaces with a LocalQueue "default"
  NameSet required_;                                   // namespaces, by their label
  std::map<std::string, Locals, std::less<>> locals_;  // by namespace
};

}  // namespace berth::kinds
