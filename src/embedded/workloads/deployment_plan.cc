#include "embedded/workloads/deployment_plan.h"

#include <algorithm>
#include <cmath>

#include "embedded/workloads/pod_name.h"
#include "embedded/workloads/pod_template.h"
#include "embedded/workloads/read.h"
#include "text/path.h"

namespace berth::sim {

namespace {

using text::JsonWriter;
using text::Value;

constexpr std::string_view kRevision = "deployment.kubernetes.io/revision";
constexpr std::string_view kDesired = "deployment.kubernetes.io/desired-replicas";
constexpr std::string_view kMaximum = "deployment.kubernetes.io/max-replicas";
constexpr std::string_view kHash = "pod-template-hash";
constexpr std::int64_t kDeploySecond = 1'000'000'000;

std::int64_t annotation_number(const Value& object, std::string_view key) {
  const Value* found = at(object, "metadata.annotations").find(key);
  std::int64_t number = 0;
  return found != nullptr && kinds::parse_int(found->string(), number) ? number : 0;
}

// 25% of 10 is 2 or 3.
int part_of(const Value& v, int total, bool up, int otherwise_percent) {
  if (v.is_number())
    return static_cast<int>(std::clamp<std::int64_t>(v.as_int64().value_or(0), 0, 1'000'000));
  std::int64_t percent = otherwise_percent;
  if (v.is_string()) {
    const std::string_view text = v.string();
    if (!text.ends_with('%') || !kinds::parse_int(text.substr(0, text.size() - 1), percent)) {
      percent = otherwise_percent;
    }
  }
  percent = std::min<std::int64_t>(percent, 1000);
  return static_cast<int>((total * percent + (up ? 99 : 0)) / 100);
}

// Two templates, of which the one may carry the hash of its ReplicaSet.
bool same_template(const Value& of_deployment, const Value& of_set) {
  if (!text::equal(at(of_deployment, "spec"), at(of_set, "spec"))) return false;
  const Value& a = at(of_deployment, "metadata.labels");
  const Value& b = at(of_set, "metadata.labels");
  std::size_t without_hash = 0;
  for (const text::Member& label : b.members()) {
    if (label.key == kHash) continue;
    ++without_hash;
    const Value* other = a.find(label.key);
    if (other == nullptr || other->string() != label.value.string()) return false;
  }
  std::size_t own = 0;
  for (const text::Member& label : a.members()) own += label.key == kHash ? 0 : 1;
  if (own != without_hash) return false;
  const Value& c = at(of_deployment, "metadata.annotations");
  const Value& d = at(of_set, "metadata.annotations");
  return (c.size() == 0 && d.size() == 0) || text::equal(c, d);
}

struct StatusCounts {
  int replicas = 0, updated = 0, ready = 0, available = 0;
};

struct DeployCondition {
  std::string type, status, reason, message;
  std::int64_t update_ns = 0, transition_ns = 0;
  friend bool operator==(const DeployCondition&, const DeployCondition&) = default;
};

DeployCondition read_deploy_condition(const Value& d, std::string_view type) {
  const Value* c = find_type(at(d, "status.conditions"), type);
  if (c == nullptr) return {std::string(type), "", "", "", 0, 0};
  return {std::string(type),
          std::string(text_at(*c, "status")),
          std::string(text_at(*c, "reason")),
          std::string(text_at(*c, "message")),
          time_at(*c, "lastUpdateTime"),
          time_at(*c, "lastTransitionTime")};
}

void change_condition(DeployCondition& c, std::string_view status, std::string_view reason,
                      std::string message, std::int64_t now, bool touch) {
  if (c.status == status && c.reason == reason && !touch) return;
  if (c.status != status) c.transition_ns = now;
  c.status = status;
  c.reason = reason;
  c.message = std::move(message);
  c.update_ns = now;
}

void put_deploy_condition(JsonWriter& out, const DeployCondition& c) {
  if (c.status.empty()) return;
  out.object([&] {
    out.field("type", c.type);
    out.field("status", c.status);
    out.field("lastUpdateTime", seconds_text(c.update_ns));
    out.field("lastTransitionTime", seconds_text(c.transition_ns));
    out.field("reason", c.reason);
    out.field("message", c.message);
  });
}

std::string deployment_status(const Value& d, const StatusCounts& counts, int replicas,
                              const DeployCondition& available,
                              const DeployCondition& progressing) {
  JsonWriter out;
  out.object([&] {
    out.object("metadata",
               [&] { out.field("resourceVersion", text_at(d, "metadata.resourceVersion")); });
    out.object("status", [&] {
      const auto put = [&out](std::string_view key, int count) {
        out.key(key);
        if (count == 0) return out.null();
        out.value(count);
      };
      out.field("observedGeneration", int_at(d, "metadata.generation"));
      put("replicas", counts.replicas);
      put("updatedReplicas", counts.updated);
      put("readyReplicas", counts.ready);
      put("availableReplicas", counts.available);
      put("unavailableReplicas",
          std::max(0, std::max(replicas, counts.replicas) - counts.available));
      out.array("conditions", [&] {
        put_deploy_condition(out, available);
        put_deploy_condition(out, progressing);
        for (const Value& c : at(d, "status.conditions").items()) {
          const std::string_view type = text_at(c, "type");
          if (type != "Available" && type != "Progressing") out.value(c);
        }
      });
    });
  });
  return std::move(out).take();
}

class DeploymentPlanner {
 public:
  DeploymentPlanner(const Value& deployment, const std::vector<SetView>& sets, bool old_pods,
                    std::int64_t now)
      : d_(deployment), sets_(sets), old_pods_(old_pods), now_(now) {
    const Value& spec = at(d_, "spec");
    replicas_ =
        static_cast<int>(std::clamp<std::int64_t>(int_at(spec, "replicas", 1), 0, 1'000'000));
    recreate_ = text_at(spec, "strategy.type") == "Recreate";
    if (!recreate_) {
      const Value& rolling = at(spec, "strategy.rollingUpdate");
      surge_ = part_of(at(rolling, "maxSurge"), replicas_, true, 25);
      unavailable_ = part_of(at(rolling, "maxUnavailable"), replicas_, false, 25);
      if (surge_ == 0 && unavailable_ == 0) unavailable_ = 1;
      unavailable_ = std::min(unavailable_, replicas_);
    }
    for (const SetView& set : sets_) {
      const bool same = same_template(at(spec, "template"), at(*set.object, "spec.template"));
      if (same && (new_ == nullptr || set.created_ns < new_->created_ns)) new_ = &set;
      wanted_total_ += set.wanted;
    }
    for (const SetView& set : sets_) {
      if (&set != new_) old_.push_back(&set);
    }
    std::sort(old_.begin(), old_.end(), [](const SetView* a, const SetView* b) {
      return std::pair(a->created_ns, a->name) < std::pair(b->created_ns, b->name);
    });
  }

  DeploymentPlan plan();

 private:
  int max_total() const { return replicas_ + surge_; }
  void name_new_set();
  bool scale_event() const;
  void scale_in_proportion();
  void roll();
  bool roll_new();
  void roll_old();
  void recreate();
  void scale(const SetView& set, int replicas) {
    if (set.wanted != replicas) plan_.scale.push_back({set.name, replicas});
  }
  // After a change of size: also where only the note of it is out of date.
  void rescale(const SetView& set, int replicas) {
    const bool noted = annotation_number(*set.object, kDesired) == replicas_;
    if (set.wanted != replicas || !noted) plan_.scale.push_back({set.name, replicas});
  }
  void clean_up();
  void write_status();
  bool progress_status(DeployCondition& progress, const StatusCounts& counts);
  int new_set_start() const;

  const Value& d_;
  const std::vector<SetView>& sets_;
  const bool old_pods_;
  const std::int64_t now_;
  bool recreate_ = false;
  int replicas_ = 1, surge_ = 0, unavailable_ = 0, wanted_total_ = 0;
  const SetView* new_ = nullptr;
  std::vector<const SetView*> old_;  // the oldest first
  DeploymentPlan plan_;
};

int DeploymentPlanner::new_set_start() const {
  if (recreate_) return replicas_;
  return std::clamp(max_total() - wanted_total_, 0, replicas_);
}

void DeploymentPlanner::name_new_set() {
  std::int64_t newest = 0;
  for (const SetView* set : old_) newest = std::max(newest, set->revision);
  if (new_ != nullptr) {
    plan_.new_set = new_->name;
    plan_.revision = new_->revision > newest ? new_->revision : newest + 1;
    plan_.stamp_set = plan_.revision != new_->revision;
  } else {
    plan_.revision = newest + 1;
    const std::string base(text_at(d_, "metadata.name"));
    const std::string body = text::to_json(at(d_, "spec.template"));
    for (int n = static_cast<int>(int_at(d_, "status.collisionCount"));; ++n) {
      plan_.new_set = base + '-' + name_hash(body + '#' + std::to_string(n));
      const bool taken = std::any_of(sets_.begin(), sets_.end(), [this](const SetView& set) {
        return set.name == plan_.new_set;
      });
      if (!taken) break;
    }
  }
  plan_.stamp_deployment = annotation_number(d_, kRevision) != plan_.revision;
}

bool DeploymentPlanner::scale_event() const {
  return std::any_of(sets_.begin(), sets_.end(), [this](const SetView& set) {
    if (set.wanted == 0) return false;
    const std::int64_t desired = annotation_number(*set.object, kDesired);
    return desired != 0 && desired != replicas_;
  });
}

// While several ReplicaSets have pods, a change of size is shared out by their sizes.
void DeploymentPlanner::scale_in_proportion() {
  std::vector<const SetView*> active;
  for (const SetView& set : sets_) {
    if (set.wanted > 0) active.push_back(&set);
  }
  if (active.size() <= 1) {
    const SetView* only = active.empty() ? new_ : active.front();
    if (only != nullptr) rescale(*only, replicas_);
    return;
  }
  const bool saturated =
      new_ != nullptr && new_->wanted == replicas_ && new_->available == replicas_;
  if (saturated) {
    for (const SetView* set : active) rescale(*set, set == new_ ? replicas_ : 0);
    return;
  }
  if (recreate_) return;
  const int allowed = replicas_ > 0 ? max_total() : 0;
  int left = allowed - wanted_total_;
  std::sort(active.begin(), active.end(), [left](const SetView* a, const SetView* b) {
    if (a->wanted != b->wanted) return a->wanted > b->wanted;
    return left > 0 ? a->created_ns > b->created_ns : a->created_ns < b->created_ns;
  });
  const double factor = wanted_total_ > 0 ? static_cast<double>(allowed) / wanted_total_ : 0;
  std::vector<int> sizes;
  for (const SetView* set : active) {
    int change = static_cast<int>(std::lround(set->wanted * factor)) - set->wanted;
    change = left > 0 ? std::clamp(change, 0, left) : std::clamp(change, left, 0);
    left -= change;
    sizes.push_back(set->wanted + change);
  }
  sizes.front() = std::max(0, sizes.front() + left);
  for (std::size_t i = 0; i < active.size(); ++i) rescale(*active[i], sizes[i]);
}

bool DeploymentPlanner::roll_new() {
  if (new_->wanted == replicas_) return false;
  if (new_->wanted > replicas_) {
    scale(*new_, replicas_);
    return true;
  }
  const int room = std::min(max_total() - wanted_total_, replicas_ - new_->wanted);
  if (room <= 0) return false;
  scale(*new_, new_->wanted + room);
  return true;
}

void DeploymentPlanner::roll_old() {
  int old_wanted = 0, available = new_->available;
  for (const SetView* set : old_) {
    old_wanted += set->wanted;
    available += set->available;
  }
  if (old_wanted == 0) return;
  const int least = replicas_ - unavailable_;
  const int new_missing = new_->wanted - new_->available;
  int room = wanted_total_ - least - new_missing;
  if (room <= 0) return;
  std::vector<int> sizes;
  // Pods that do not work go first: nothing is lost by them.
  for (const SetView* set : old_) {
    int size = set->wanted;
    const int broken = std::clamp(std::min(size - set->available, room), 0, size);
    size -= broken;
    room -= broken;
    sizes.push_back(size);
  }
  int working = std::max(0, available - least);
  for (std::size_t i = 0; i < old_.size() && working > 0; ++i) {
    const int taken = std::min(sizes[i], working);
    sizes[i] -= taken;
    working -= taken;
  }
  for (std::size_t i = 0; i < old_.size(); ++i) scale(*old_[i], sizes[i]);
}

void DeploymentPlanner::roll() {
  if (new_ == nullptr) {
    plan_.create_set = true;
    plan_.new_replicas = new_set_start();
    return;
  }
  if (!roll_new()) roll_old();
}

void DeploymentPlanner::recreate() {
  for (const SetView* set : old_) scale(*set, 0);
  if (!plan_.scale.empty() || old_pods_) return;
  if (new_ == nullptr) {
    plan_.create_set = true;
    plan_.new_replicas = replicas_;
  } else {
    scale(*new_, replicas_);
  }
}

void DeploymentPlanner::clean_up() {
  const std::int64_t keep = int_at(d_, "spec.revisionHistoryLimit", 10);
  std::vector<const SetView*> empty;
  for (const SetView* set : old_) {
    if (set->wanted == 0 && set->replicas == 0 && set->current) empty.push_back(set);
  }
  std::sort(empty.begin(), empty.end(),
            [](const SetView* a, const SetView* b) { return a->revision < b->revision; });
  const std::int64_t surplus = static_cast<std::int64_t>(old_.size()) - keep;
  for (std::int64_t i = 0; i < surplus && i < static_cast<std::int64_t>(empty.size()); ++i) {
    const SetView* set = empty[static_cast<std::size_t>(i)];
    plan_.remove.emplace_back(set->name, set->uid);
  }
}

// What is told of a roll-out: that it began, moves, is through, or has stood still for too long.
bool DeploymentPlanner::progress_status(DeployCondition& progress, const StatusCounts& counts) {
  const DeployCondition before = progress;
  const Value& status = at(d_, "status");
  const bool complete = new_ != nullptr && counts.updated == replicas_ &&
                        counts.replicas == replicas_ && counts.available == replicas_ &&
                        plan_.scale.empty();
  const bool moved = counts.updated > int_at(status, {"updatedReplicas"}) ||
                     counts.ready > int_at(status, {"readyReplicas"}) ||
                     counts.available > int_at(status, {"availableReplicas"});
  const std::string what = "ReplicaSet \"" + plan_.new_set + "\"";
  const std::int64_t deadline = int_at(d_, "spec.progressDeadlineSeconds", 600);
  const std::int64_t left = progress.update_ns + deadline * kDeploySecond - now_;
  if (true_at(d_, "spec.paused")) {
    change_condition(progress, "Unknown", "DeploymentPaused", "Deployment is paused", now_, false);
  } else if (plan_.create_set) {
    change_condition(progress, "True", "NewReplicaSetCreated",
                     "Created new replica set \"" + plan_.new_set + "\"", now_, false);
  } else if (complete) {
    change_condition(progress, "True", "NewReplicaSetAvailable",
                     what + " has successfully progressed.", now_, false);
  } else if (progress.status.empty() || moved || progress.reason == "DeploymentPaused" ||
             progress.reason == "NewReplicaSetAvailable") {
    change_condition(progress, "True", "ReplicaSetUpdated", what + " is progressing.", now_, moved);
  } else if (progress.status == "True" && left <= 0) {
    change_condition(progress, "False", "ProgressDeadlineExceeded",
                     what + " has timed out progressing.", now_, false);
  } else if (progress.status == "True") {
    plan_.again_ns = left;
  }
  return progress != before;
}

void DeploymentPlanner::write_status() {
  StatusCounts counts;
  for (const SetView& set : sets_) {
    counts.replicas += set.replicas;
    counts.ready += set.ready;
    counts.available += set.available;
  }
  if (new_ != nullptr) counts.updated = new_->replicas;
  const DeployCondition before = read_deploy_condition(d_, "Available");
  DeployCondition available = before, progress = read_deploy_condition(d_, "Progressing");
  const bool enough = counts.available >= replicas_ - unavailable_;
  change_condition(available, enough ? "True" : "False",
                   enough ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
                   enough ? "Deployment has minimum availability."
                          : "Deployment does not have minimum availability.",
                   now_, false);
  const bool progressed = progress_status(progress, counts);
  const Value& status = at(d_, "status");
  const bool same = int_at(status, "observedGeneration") == int_at(d_, "metadata.generation") &&
                    int_at(status, "replicas") == counts.replicas &&
                    int_at(status, "updatedReplicas") == counts.updated &&
                    int_at(status, "readyReplicas") == counts.ready &&
                    int_at(status, "availableReplicas") == counts.available &&
                    available == before && !progressed;
  if (!same) plan_.status = deployment_status(d_, counts, replicas_, available, progress);
}

DeploymentPlan DeploymentPlanner::plan() {
  name_new_set();
  const bool deleting = at(d_, "metadata").find("deletionTimestamp") != nullptr;
  const bool paused = true_at(d_, "spec.paused");
  if (!deleting) {
    if (paused || scale_event()) {
      scale_in_proportion();
      if (!paused && plan_.scale.empty()) recreate_ ? recreate() : roll();
    } else {
      recreate_ ? recreate() : roll();
    }
    if (!paused) clean_up();
  }
  if (new_ == nullptr && !plan_.create_set) {  // not yet, or not while paused
    plan_.stamp_set = plan_.stamp_deployment = false;
  }
  write_status();
  return std::move(plan_);
}

void put_set_annotations(JsonWriter& out, const Value& d, std::int64_t revision) {
  const int replicas = static_cast<int>(int_at(d, "spec.replicas", 1));
  const bool recreate = text_at(d, "spec.strategy.type") == "Recreate";
  const int surge =
      recreate ? 0 : part_of(at(d, "spec.strategy.rollingUpdate.maxSurge"), replicas, true, 25);
  out.object("annotations", [&] {
    out.field(kDesired, std::to_string(replicas));
    out.field(kMaximum, std::to_string(replicas + surge));
    if (revision > 0) out.field(kRevision, std::to_string(revision));
  });
}

}  // namespace

SetView read_set(const Value& set) {
  SetView out;
  out.object = &set;
  out.name = text_at(set, "metadata.name");
  out.uid = text_at(set, "metadata.uid");
  out.hash = at(set, "metadata.labels")[kHash].string();
  out.wanted = static_cast<int>(int_at(set, "spec.replicas", 1));
  out.replicas = static_cast<int>(int_at(set, "status.replicas"));
  out.ready = static_cast<int>(int_at(set, "status.readyReplicas"));
  out.available = static_cast<int>(int_at(set, "status.availableReplicas"));
  out.current = int_at(set, "status.observedGeneration") >= int_at(set, "metadata.generation");
  out.revision = annotation_number(set, kRevision);
  out.created_ns = time_at(set, "metadata.creationTimestamp");
  return out;
}

DeploymentPlan plan_deployment(const Value& deployment, const std::vector<SetView>& sets,
                               bool old_pods, std::int64_t wall_now) {
  return DeploymentPlanner(deployment, sets, old_pods, wall_now).plan();
}

std::string new_set_object(const Value& d, const DeploymentPlan& plan) {
  const std::string hash = plan.new_set.substr(plan.new_set.rfind('-') + 1);
  const std::map<std::string, std::string> with_hash = {{std::string(kHash), hash}};
  const Value& pod_template = at(d, "spec.template");
  JsonWriter out;
  out.object([&] {
    out.field("apiVersion", "apps/v1");
    out.field("kind", "ReplicaSet");
    out.object("metadata", [&] {
      out.field("name", plan.new_set);
      out.field("namespace", text_at(d, "metadata.namespace"));
      out.key("labels");
      put_string_map(out, at(pod_template, "metadata.labels"), with_hash);
      put_set_annotations(out, d, plan.revision);
      put_controller_reference(out,
                               {"apps/v1", "Deployment", std::string(text_at(d, "metadata.name")),
                                std::string(text_at(d, "metadata.uid"))});
    });
    out.object("spec", [&] {
      out.field("replicas", plan.new_replicas);
      if (const std::int64_t least = int_at(d, "spec.minReadySeconds"); least > 0) {
        out.field("minReadySeconds", least);
      }
      out.object("selector", [&] {
        const Value& selector = at(d, "spec.selector");
        out.key("matchLabels");
        put_string_map(out, at(selector, "matchLabels"), with_hash);
        if (const Value* expressions = selector.find("matchExpressions")) {
          out.field("matchExpressions", *expressions);
        }
      });
      out.object("template", [&] {
        out.object("metadata", [&] {
          for (const text::Member& member : at(pod_template, "metadata").members()) {
            if (member.key != "labels") out.field(member.key, member.value);
          }
          out.key("labels");
          put_string_map(out, at(pod_template, "metadata.labels"), with_hash);
        });
        out.field("spec", at(pod_template, "spec"));
      });
    });
  });
  return std::move(out).take();
}

std::string set_patch(const Value& d, std::optional<int> replicas, std::int64_t revision) {
  JsonWriter out;
  out.object([&] {
    out.object("metadata", [&] { put_set_annotations(out, d, revision); });
    if (replicas) {
      out.object("spec", [&] { out.field("replicas", *replicas); });
    }
  });
  return std::move(out).take();
}

}  // namespace berth::sim
