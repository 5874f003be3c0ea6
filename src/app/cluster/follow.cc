#include "app/cluster/follow.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "app/words.h"
#include "edge/kube/informer.h"
#include "text/path.h"
#include "text/quantity.h"
#include "text/rfc3339.h"

namespace berth::app {

namespace {

std::int64_t time_at(const text::Value& value) {
  if (!value.is_string()) return 0;
  const Result<std::int64_t> time = text::parse_rfc3339(value.string());
  return time.ok() ? *time : 0;
}

const text::Value* true_condition(const text::Value& root, std::string_view type,
                                  std::string_view status = "True") {
  for (const text::Value& condition : at(root, "status.conditions").items()) {
    if (at(condition, "type").string() == type && at(condition, "status").string() == status) {
      return &condition;
    }
  }
  return nullptr;
}

// "0,1,2,5" as "0-2,5"; what is no list of numbers as it is.
std::string show_list(std::string_view text) {
  std::vector<int> numbers;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at != end) {
    int number = 0;
    const auto [stop, code] = std::from_chars(at, end, number);
    if (code != std::errc() || (stop != end && *stop != ',')) return std::string(text);
    if (numbers.empty() || numbers.back() != number) numbers.push_back(number);
    at = stop == end ? end : stop + 1;
  }
  return show_ranges(numbers);
}

int gpus_of_template(const text::Value& job) {
  std::int64_t gpus = 0;
  for (const text::Value& container : at(job, "spec.template.spec.containers").items()) {
    const text::Value& limit = at(container, "resources.limits[nvidia.com/gpu]");
    const Result<text::Quantity> amount =
        text::parse_quantity(limit.is_string() ? limit.string() : limit.number_text());
    if (amount.ok()) gpus += amount->value();
  }
  return static_cast<int>(gpus);
}

}  // namespace

struct JobFollower::State {
  State(kube::Client& with, std::string in, Say to)
      : client(with), ns(std::move(in)), say(std::move(to)) {}

  struct PodSeen {
    std::string node, gpus, phase, why;
  };
  struct Seen {
    FollowedJob job;
    std::map<std::string, PodSeen> pods;
    std::string said;
    std::string queue_why;
  };

  kube::Client& client;
  std::string ns;
  Say say;
  std::map<std::string, Seen> jobs;  // by name
  std::unique_ptr<kube::Informer> job_informer, pod_informer, workload_informer;

  std::int64_t now() const { return client.loop().wall().now_ns(); }

  void tell(Seen& seen, const std::string& line) {
    if (line == seen.said) return;
    seen.said = line;
    say(seen.job, line);
  }

  void end(Seen& seen, const char* state, const std::string& why) {
    if (seen.job.ended()) return;
    seen.job.state = state;
    seen.job.why = why;
    seen.job.ended_ns = now();
    tell(seen, why.empty() ? state : std::string(state) + ": " + why);
  }

  static std::string places(const Seen& seen) {
    std::map<std::string, std::string> by_node;
    for (const auto& [name, pod] : seen.pods) {
      if (pod.node.empty()) continue;
      std::string& gpus = by_node[pod.node];
      if (!pod.gpus.empty()) gpus += (gpus.empty() ? "" : ",") + pod.gpus;
    }
    std::string out;
    for (const auto& [node, gpus] : by_node) {
      out += (out.empty() ? "" : " · ") + node;
      if (!gpus.empty()) out += ": " + gpus;
    }
    return out;
  }

  void look(Seen& seen) {
    if (seen.job.ended()) return;
    int running = 0;
    std::string why = seen.queue_why;
    for (const auto& [name, pod] : seen.pods) {
      running += pod.phase == "Running" || pod.phase == "Succeeded";
      if (pod.node.empty() && !pod.why.empty()) why = pod.why;
    }
    const std::string where = places(seen);
    if (!where.empty()) seen.job.where = where;
    if (seen.job.pods > 0 && running >= seen.job.pods) {
      if (seen.job.started_ns == 0) seen.job.started_ns = now();
      seen.job.state = "running";
      tell(seen, "runs on " + seen.job.where);
    } else if (running == 0 && !why.empty()) {
      seen.job.state = "waiting";
      seen.job.why = why;
      tell(seen, "waits: " + why);
    }
  }

  void on_job(const kube::ObjectPtr& after, const kube::Key& key) {
    const auto found = jobs.find(key.name);
    if (found == jobs.end()) return;
    Seen& seen = found->second;
    if (after == nullptr) return end(seen, "gone", "the Job was deleted");
    const text::Value& root = after->root();
    const text::Value& parallelism = at(root, "spec.parallelism");
    seen.job.pods = static_cast<int>(parallelism.as_int64().value_or(1));
    seen.job.gpus = seen.job.pods * gpus_of_template(root);
    seen.job.created_ns = time_at(at(root, "metadata.creationTimestamp"));
    if (true_condition(root, "Complete") != nullptr) return end(seen, "succeeded", "");
    if (const text::Value* failed = true_condition(root, "Failed")) {
      return end(seen, "failed", std::string(at(*failed, "message").string()));
    }
    look(seen);
  }

  void on_pod(const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
    const kube::Object& object = after != nullptr ? *after : *before;
    const text::Value& labels = at(object.root(), "metadata.labels");
    const auto found =
        jobs.find(std::string(at(labels, "[batch.kubernetes.io/job-name]").string()));
    if (found == jobs.end()) return;
    Seen& seen = found->second;
    if (after == nullptr) {
      seen.pods.erase(object.key.name);
      return;
    }
    PodSeen& pod = seen.pods[object.key.name];
    pod.node = at(object.root(), "spec.nodeName").string();
    pod.phase = at(object.root(), "status.phase").string();
    pod.gpus = show_list(at(object.root(), "metadata.annotations[berth.dev/gpus]").string());
    pod.why.clear();
    if (const text::Value* waits = true_condition(object.root(), "PodScheduled", "False")) {
      pod.why = at(*waits, "message").string();
    }
    look(seen);
  }

  void on_workload(const kube::ObjectPtr& after) {
    if (after == nullptr) return;
    for (const text::Value& owner : at(after->root(), "metadata.ownerReferences").items()) {
      const auto found = jobs.find(std::string(at(owner, "name").string()));
      if (found == jobs.end() || at(owner, "kind").string() != "Job") continue;
      const text::Value* waits = true_condition(after->root(), "QuotaReserved", "False");
      found->second.queue_why = waits == nullptr ? "" : std::string(at(*waits, "message").string());
      look(found->second);
    }
  }
};

JobFollower::JobFollower(kube::Client& client, Random random, std::string ns, Say say)
    : state_(std::make_shared<State>(client, std::move(ns), std::move(say))) {
  const auto informer = [&](const kube::Resource& resource) {
    kube::InformerOptions options;
    options.resource = resource;
    options.ns = state_->ns;
    return std::make_unique<kube::Informer>(client, random.split(resource.plural), options);
  };
  state_->job_informer = informer(kube::resources::jobs());
  state_->pod_informer = informer(kube::resources::pods());
  state_->workload_informer = informer(kube::resources::workloads());
}

JobFollower::~JobFollower() = default;

void JobFollower::follow(const std::string& name) {
  FollowedJob& job = state_->jobs[name].job;
  job.name = state_->ns + "/" + name;
  job.state = "waiting";
}

void JobFollower::start() {
  State* state = state_.get();  // the informers are its own
  state->job_informer->add_handler([state](const auto& before, const auto& after) {
    state->on_job(after, after != nullptr ? after->key : before->key);
  });
  state->pod_informer->add_handler(
      [state](const auto& before, const auto& after) { state->on_pod(before, after); });
  state->workload_informer->add_handler(
      [state](const auto&, const auto& after) { state->on_workload(after); });
  state->job_informer->start();
  state->pod_informer->start();
  state->workload_informer->start();
}

std::vector<FollowedJob> JobFollower::jobs() const {
  std::vector<FollowedJob> out;
  for (const auto& [name, seen] : state_->jobs) out.push_back(seen.job);
  return out;
}

bool JobFollower::all_ended() const {
  return std::all_of(state_->jobs.begin(), state_->jobs.end(),
                     [](const auto& entry) { return entry.second.job.ended(); });
}

}  // namespace berth::app
