// The life of pods on simulated nodes: admitted, started, run, restarted, stopped, gone.
#include <algorithm>

#include "embedded/nodes/nodes_state.h"
#include "embedded/workloads/read.h"
#include "text/path.h"

namespace berth::sim {

namespace {

using kube::Answer;

constexpr std::int64_t kPodRetryNs = 1'000'000'000;
constexpr std::int64_t kPodSecondNs = 1'000'000'000;
constexpr std::int64_t kMaxBackoffNs = 300 * kPodSecondNs;
constexpr int kKilled = 143;  // by SIGTERM

bool ended_phase(std::string_view phase) { return phase == "Succeeded" || phase == "Failed"; }

}  // namespace

PodRecord* Nodes::State::find_pod(const kube::Key& key, const std::string& uid) {
  const auto it = pods.find(key);
  return it == pods.end() || it->second->uid != uid ? nullptr : it->second.get();
}

void Nodes::State::on_pod(const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
  if (after == nullptr) return drop_pod(before->key);
  const auto it = pods.find(after->key);
  if (it != pods.end() && it->second->uid == after->uid) {
    return change_pod(*it->second, after->root());
  }
  if (it != pods.end()) drop_pod(after->key);  // another pod of the same name
  SimNode* node = find_node(text_at(after->root(), "spec.nodeName"));
  if (node != nullptr) add_pod(*node, *after);
}

void Nodes::State::add_pod(SimNode& node, const kube::Object& object) {
  const text::Value& root = object.root();
  const std::string_view phase = text_at(root, "status.phase");
  if (ended_phase(phase)) return;  // nothing is left to do
  auto owned = std::make_unique<PodRecord>();
  PodRecord& pod = *owned;
  pod.key = object.key;
  pod.uid = object.uid;
  pod.node = node.number;
  std::vector<std::string> wrong;
  pod.facts = read_pod_facts(root, options.default_run_ns, wrong);
  pod.resize.generation = int_at(root, "metadata.generation");
  for (const std::string& name : wrong) {
    warn("annotation of a pod not understood", pod.key.to_string(), "sim.berth.dev/" + name);
  }
  pods.emplace(pod.key, std::move(owned));
  node.pods.insert(pod.key);
  const auto slot = std::find(node.ips.begin(), node.ips.end(), false);
  if (slot != node.ips.end()) {
    pod.ip_slot = static_cast<int>(slot - node.ips.begin());
    *slot = true;
  }
  if (phase == "Running") {
    restore_pod(root, wall(), ticks(), pod);
    if (pod.resize.asked) pod.resize.generation = -1;
    const auto known = holders_before.find(pod.uid);
    pod.held = node.machine.hold(
        pod.facts.needs, known == holders_before.end() ? std::vector<int>{} : known->second);
    if (known != holders_before.end()) holders_before.erase(known);
    want_publish(node, false);
    schedule(pod);
  }
  change_pod(pod, root);
}

// What others do to a pod: they delete it, or end it.
void Nodes::State::change_pod(PodRecord& pod, const text::Value& object) {
  const text::Value& meta = at(object, "metadata");
  pod.tracked = at(meta, "finalizers").size() > 0;
  const std::string_view phase = text_at(object, "status.phase");
  if (ended_phase(phase) && pod.stage != PodStage::kEnded) {
    pod.stage = PodStage::kEnded;  // somebody else has had the last word
    pod.write_wanted = false;
    release(pod);
    schedule(pod);
  }
  if (meta.find("deletionTimestamp") != nullptr) {
    pod.deleting = true;
    const std::int64_t grace = int_at(meta, "deletionGracePeriodSeconds", 0);
    pod.grace_ns = std::clamp<std::int64_t>(grace, 0, 86'400) * kPodSecondNs;
    pod.grace_over = grace <= 0;
  }
  SimNode& node = nodes[static_cast<std::size_t>(pod.node)];
  if (!node.alive) return;  // sweep() comes back to it
  if (pod.deleting && pod.stage != PodStage::kStopping) return begin_stop(pod);
  if (pod.stage == PodStage::kWaiting) return admit(pod);
  const std::int64_t generation = int_at(meta, "generation");
  if (pod.held.any && pod.resize.generation != generation) {
    pod.resize.generation = generation;
    look_at_resize(pod, object);
  }
}

void Nodes::State::drop_pod(const kube::Key& key) {
  const auto it = pods.find(key);
  if (it == pods.end()) return;
  PodRecord& pod = *it->second;
  SimNode& node = nodes[static_cast<std::size_t>(pod.node)];
  client.loop().cancel(pod.timer);
  release(pod);
  if (pod.ip_slot >= 0) node.ips[static_cast<std::size_t>(pod.ip_slot)] = false;
  node.pods.erase(key);
  pods.erase(it);
}

void Nodes::State::release(PodRecord& pod) {
  if (!pod.held.any) return;
  SimNode& node = nodes[static_cast<std::size_t>(pod.node)];
  const bool gpus = !pod.held.gpus.empty();
  node.machine.release(pod.held);
  if (gpus) want_publish(node, false);
  retry_resizes(node);
}

// ---- resizing ----

void Nodes::State::look_at_resize(PodRecord& pod, const text::Value& object) {
  PodResize& resize = pod.resize;
  const PodFacts& facts = pod.facts;
  resize.containers.clear();
  read_wanted(object, resize.needs, resize.containers);
  const bool as_it_is =
      std::equal(facts.containers.begin(), facts.containers.end(), resize.containers.begin(),
                 resize.containers.end(), [](const PodContainer& a, const PodContainer& b) {
                   return a.name == b.name && a.requests == b.requests && a.limits == b.limits;
                 });
  if (as_it_is && resize.reason.empty()) return;
  resize.asked = true;
  resize.reason.clear();
  try_resize(pod);
  want_write(pod);
  retry_resizes(nodes[static_cast<std::size_t>(pod.node)]);
}

// False: it was refused as before.
bool Nodes::State::try_resize(PodRecord& pod) {
  PodResize& resize = pod.resize;
  SimNode& node = nodes[static_cast<std::size_t>(pod.node)];
  const auto refusal = node.machine.resize(resize.needs, pod.held);
  if (refusal) {
    if (resize.reason == refusal->reason) return false;
    if (refusal->reason == "Deferred") node.deferred.insert(pod.key);
    resize.reason = refusal->reason;
    resize.message = refusal->message;
    resize.since = wall();
    return true;
  }
  resize.reason.clear();
  pod.facts.needs.cpu_milli = resize.needs.cpu_milli;
  pod.facts.needs.memory = resize.needs.memory;
  pod.facts.containers = std::move(resize.containers);
  resize.containers.clear();
  return true;
}

// Something was given back: who asked for more may have it, in the order of names.
void Nodes::State::retry_resizes(SimNode& node) {
  for (auto it = node.deferred.begin(); it != node.deferred.end();) {
    const auto found = pods.find(*it);
    PodRecord* pod = found == pods.end() ? nullptr : found->second.get();
    const bool waits = pod != nullptr && pod->held.any && pod->resize.reason == "Deferred";
    const bool answered = waits && try_resize(*pod);
    if (answered) want_write(*pod);
    it = waits && !answered ? std::next(it) : node.deferred.erase(it);
  }
}

// ---- starting ----

void Nodes::State::admit(PodRecord& pod) {
  SimNode& node = nodes[static_cast<std::size_t>(pod.node)];
  if (!node.works()) return;
  pod.admitted_at = wall();
  const Refusal ordered{node.refuse, node.refuse == "TopologyAffinityError"
                                         ? "Resources cannot be allocated with Topology locality"
                                         : "Allocate failed due to a simulated fault, which is "
                                           "unexpected"};
  if (!node.refuse.empty() && node.refuse_gpu < 0) return refuse(pod, ordered);
  if (const auto refusal = node.machine.admit(pod.facts.needs, pod.held)) {
    return refuse(pod, *refusal);
  }
  if (!node.refuse.empty() && pod.held.gpus.take[static_cast<std::size_t>(node.refuse_gpu)] != 0) {
    node.machine.release(pod.held);
    return refuse(pod, ordered);
  }
  if (!pod.held.gpus.empty()) {
    if (pod.held.differs && telemetry) telemetry->count_hint_difference();
    want_publish(node, false);
  }
  pod.stage = PodStage::kStarting;
  const std::int64_t now = ticks();
  pod.start_due = now + 1 + options.start_ns + node.slow_ns + pod.facts.extra_start_ns;
  if (pod.facts.deadline_ns > 0) pod.deadline_due = now + pod.facts.deadline_ns;
  schedule(pod);
}

void Nodes::State::refuse(PodRecord& pod, const Refusal& refusal) {
  pod.exit_code = 1;
  pod.reason = refusal.reason;
  pod.message = "Pod was rejected: " + refusal.message;
  pod.stage = PodStage::kEnded;
  pod.finished_at = wall();
  want_write(pod);
}

void Nodes::State::run(PodRecord& pod) {
  pod.stage = PodStage::kRunning;
  pod.started_at = wall();
  pod.start_due = 0;
  pod.ready = pod.facts.ready_ns == 0;
  pod.ready_at = pod.started_at;
  const std::int64_t now = ticks();
  pod.ready_due = pod.ready ? 0 : now + pod.facts.ready_ns;
  pod.run_due = pod.facts.run_ns > 0 ? now + pod.facts.run_ns : 0;
  if (telemetry) sample_node(nodes[static_cast<std::size_t>(pod.node)]);
  want_write(pod);
}

// ---- ending ----

// The containers ended by themselves.
void Nodes::State::end_run(PodRecord& pod, int code) {
  const bool again = pod.facts.restarts_always || (pod.facts.restarts_on_failure && code != 0);
  if (!again) return finish(pod, code);
  pod.exit_code = code;
  pod.finished_at = wall();
  pod.run_due = pod.ready_due = 0;
  pod.ready = false;
  pod.ready_at = pod.finished_at;
  ++pod.restarts;
  pod.stage = PodStage::kBackoff;
  pod.start_due = ticks() + backoff_of(pod);
  want_write(pod);
}

std::int64_t Nodes::State::backoff_of(const PodRecord& pod) const {
  std::int64_t delay = std::max<std::int64_t>(options.backoff_ns, 1);
  for (int i = 1; i < pod.restarts && delay < kMaxBackoffNs; ++i) delay *= 2;
  return std::min(delay, std::max(kMaxBackoffNs, options.backoff_ns));
}

void Nodes::State::finish(PodRecord& pod, int code) {
  pod.exit_code = code;
  pod.finished_at = wall();
  pod.ready = false;
  pod.stage = PodStage::kEnded;
  pod.start_due = pod.run_due = pod.ready_due = pod.stop_due = pod.deadline_due = 0;
  release(pod);
  if (pod.deleting) {
    pod.delete_wanted = !pod.grace_over;
    if (!pod.tracked) return pump(pod);  // nobody would see the status
  }
  want_write(pod);
}

void Nodes::State::fail_pod(PodRecord& pod, std::string reason, std::string message) {
  pod.reason = std::move(reason);
  pod.message = std::move(message);
  finish(pod, 137);
}

void Nodes::State::begin_stop(PodRecord& pod) {
  if (pod.stage == PodStage::kEnded) {
    if (!pod.grace_over && !pod.remove_sent) {
      pod.delete_wanted = true;
      pump(pod);
    }
    return;
  }
  const bool runs = pod.stage == PodStage::kRunning;
  pod.stage = PodStage::kStopping;
  pod.start_due = pod.run_due = pod.ready_due = pod.deadline_due = 0;
  const std::int64_t wait = runs ? std::min(pod.facts.stop_ns, pod.grace_ns) : 0;
  if (wait <= 0) return stopped(pod);
  pod.stop_due = ticks() + wait;
  schedule(pod);
}

void Nodes::State::stopped(PodRecord& pod) {
  if (pod.admitted_at == 0) pod.admitted_at = wall();
  finish(pod, kKilled);
}

// ---- time ----

void Nodes::State::schedule(PodRecord& pod) {
  client.loop().cancel(pod.timer);
  pod.timer = 0;
  std::int64_t first = 0;
  for (const std::int64_t due :
       {pod.start_due, pod.run_due, pod.ready_due, pod.stop_due, pod.deadline_due}) {
    if (due != 0 && (first == 0 || due < first)) first = due;
  }
  if (first == 0 || pod.stage == PodStage::kEnded) return;
  pod.timer = client.loop().after(first - ticks(), guarded([this, key = pod.key, uid = pod.uid] {
                                    PodRecord* found = find_pod(key, uid);
                                    if (found == nullptr) return;
                                    found->timer = 0;
                                    tick(*found);
                                  }));
}

void Nodes::State::tick(PodRecord& pod) {
  const std::int64_t now = ticks();
  while (tick_once(pod, now)) {
  }
  schedule(pod);
}

bool Nodes::State::tick_once(PodRecord& pod, std::int64_t now) {
  const auto due = [now](std::int64_t& at) {
    if (at == 0 || at > now) return false;
    at = 0;
    return true;
  };
  if (pod.stage == PodStage::kEnded) return false;
  if (due(pod.deadline_due)) {
    fail_pod(pod, "DeadlineExceeded",
             "Pod was active on the node longer than the specified deadline");
    return false;
  }
  if (due(pod.stop_due)) {
    stopped(pod);
    return false;
  }
  if (due(pod.ready_due)) {
    pod.ready = true;
    pod.ready_at = wall();
    want_write(pod);
    return true;
  }
  if (due(pod.run_due)) {
    end_run(pod, exit_code_of_run(pod.facts, pod.restarts));
    return true;
  }
  if (due(pod.start_due)) {
    run(pod);
    return true;
  }
  return false;
}

// ---- writing ----

void Nodes::State::want_write(PodRecord& pod) {
  pod.write_wanted = true;
  schedule(pod);
  pump(pod);
}

void Nodes::State::pump(PodRecord& pod) {
  const SimNode& node = nodes[static_cast<std::size_t>(pod.node)];
  if (pod.writing || !node.alive || node.removed) return;
  if (!pod.write_wanted && (!pod.delete_wanted || pod.remove_sent)) return;
  pod.writing = true;
  const bool write = pod.write_wanted;
  outbox.push([this, key = pod.key, uid = pod.uid, write](const Outbox::Done& done) {
    write ? write_pod(key, uid, done) : remove_pod(key, uid, done);
  });
}

void Nodes::State::write_pod(const kube::Key& key, const std::string& uid,
                             const Outbox::Done& done) {
  PodRecord* pod = find_pod(key, uid);
  if (pod == nullptr) return done();
  if (!pod->write_wanted) {  // it was settled meanwhile
    pod->writing = false;
    done();
    return pump(*pod);
  }
  pod->write_wanted = false;
  const SimNode& node = nodes[static_cast<std::size_t>(pod->node)];
  client.patch(kube::resources::pods(), key, kube::PatchType::kStrategic,
               pod_status_patch(*pod, node_ip(node.number), pod_ip(node.number, pod->ip_slot)),
               {.subresource = "status"}, guarded([this, key, uid, done](Answer answer) {
                 done();
                 wrote_pod(key, uid, answer);
               }));
}

void Nodes::State::wrote_pod(const kube::Key& key, const std::string& uid, const Answer& answer) {
  PodRecord* pod = find_pod(key, uid);
  if (pod == nullptr) return;
  pod->writing = false;
  if (answer.ok()) {
    pod->told_running = true;
    pod->write_failures = 0;
    return pump(*pod);
  }
  // Gone, or another pod of that name: the informer will tell.
  if (answer.not_found() || answer.conflict()) return;
  if (pod->write_failures++ == 0) {
    warn("pod status not written", key.to_string(), answer.error().to_string());
  }
  pod->write_wanted = true;
  later(kPodRetryNs, [this, key, uid] {
    if (PodRecord* found = find_pod(key, uid)) pump(*found);
  });
}

// The kubelet's last word: the containers are gone, so is the object.
void Nodes::State::remove_pod(const kube::Key& key, const std::string& uid,
                              const Outbox::Done& done) {
  PodRecord* pod = find_pod(key, uid);
  if (pod == nullptr) return done();
  kube::DeleteOptions remove;
  remove.uid = uid;
  remove.grace_seconds = 0;
  client.remove(kube::resources::pods(), key, remove,
                guarded([this, key, uid, done](Answer answer) {
                  done();
                  PodRecord* found = find_pod(key, uid);
                  if (found == nullptr) return;
                  found->writing = false;
                  found->remove_sent = answer.ok() || answer.not_found() || answer.conflict();
                  if (!found->remove_sent) {
                    later(kPodRetryNs, [this, key, uid] {
                      if (PodRecord* again = find_pod(key, uid)) pump(*again);
                    });
                  }
                }));
}

void Nodes::State::sweep(SimNode& node) {
  const std::vector<kube::Key> keys(node.pods.begin(), node.pods.end());
  for (const kube::Key& key : keys) {
    const auto it = pods.find(key);
    if (it == pods.end()) continue;
    PodRecord& pod = *it->second;
    if (pod.deleting && pod.stage != PodStage::kStopping) {
      begin_stop(pod);
    } else if (pod.stage == PodStage::kWaiting) {
      admit(pod);
    }
    pump(pod);
  }
}

}  // namespace berth::sim
