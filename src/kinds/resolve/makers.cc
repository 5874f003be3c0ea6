#include <algorithm>
#include <optional>

#include "kinds/kind_table.h"
#include "kinds/quota_requests.h"
#include "kinds/resolve/stages.h"

namespace berth::kinds {

namespace {

std::string path_text(const std::vector<std::string>& path) {
  std::string out;
  for (const std::string& step : path) {
    const bool place = step.find_first_not_of("0123456789") == std::string::npos;
    if (place) {
      out += '[' + step + ']';
    } else {
      out += (out.empty() ? "" : ".") + step;
    }
  }
  return out;
}

class MakerQueue : private Part {
 public:
  MakerQueue(Resolution& all, KnownQueues& queues, const PodReferences& references,
             Workloads& workloads)
      : Part(all), queues_(queues), references_(references), workloads_(workloads) {}

  // What makes others waits for them: a JobSet in an AppWrapper is the AppWrapper's, so those that
  // make come first.
  void run() {
    if (in_.makers.empty()) return;
    for (const Found<PodObject>& pod : in_.pods) {
      if (pod.object.spec.node_name.empty() || pod.object.finished()) continue;
      const Meta& meta = pod.object.meta;
      for (const std::string& maker : makers_named_by(meta.labels)) {
        running_.insert(qualified(meta.ns, maker));
      }
    }
    NameSet open;
    for (const auto& found : in_.makers) {
      open.insert(qualified(found.object.meta.ns, found.object.owner));
    }
    constexpr int kDeepest = 4;  // whoever is made by what he makes comes last
    std::vector<char> done(in_.makers.size(), 0);
    for (int depth = 0; depth <= kDeepest; ++depth) {
      NameSet still;
      for (std::size_t i = 0; i < in_.makers.size(); ++i) {
        if (done[i] != 0) continue;
        const QueuedMaker& maker = in_.makers[i].object;
        const Owner* owner = maker.meta.controller();
        const bool waits =
            owner != nullptr && open.contains(qualified(maker.meta.ns, owner->text()));
        if (waits && depth < kDeepest) {
          still.insert(qualified(maker.meta.ns, maker.owner));
          continue;
        }
        done[i] = 1;
        queue_maker(in_.makers[i]);
      }
      open = std::move(still);
    }
  }

 private:
  std::optional<std::string> queue_of(const QueuedMaker& maker) const {
    if (workloads_.made_by_queued(maker.meta)) return std::nullopt;
    if (const auto named = queues_.default_queue_of(maker.meta)) return named;
    if (queues_.decide() && queues_.managed(maker.meta.ns) && queues_.requires_queue(maker.meta.ns))
      return "";
    return std::nullopt;
  }

  void queue_maker(Found<QueuedMaker>& found) {
    QueuedMaker& maker = found.object;
    if (maker.ended != Ended::kNo) return;
    const std::string key = qualified(maker.meta.ns, maker.owner);
    const std::optional<std::string> queue = queue_of(maker);
    if (workloads_.made_by_queued(maker.meta)) {  // what it makes is that one's, too
      workloads_.claim(key) =
          *workloads_.of(qualified(maker.meta.ns, maker.meta.controller()->text()));
      return;
    }
    const Workloads::Places* owned = workloads_.of(key);
    if (!queue && owned == nullptr) {
      if (options_.live || maker.rests) return;
      in_.notes.add(Gathered::note(found.origin, found.shown, "",
                                   "it waits in no queue, and its pods are made by its operator: "
                                   "those of the input are looked at"));
      return;
    }
    if (!queues_.decide()) {
      if (!maker.rests) queues_.say_no_queues(found.origin, found.shown);
      return;
    }
    if (owned != nullptr) {
      if (!maker.unread) ask_as_now(maker, *owned);
      return;
    }
    // As with Jobs: what cannot but wait for ever is left as it is, and so is what runs in files.
    const bool runs = running_.contains(key);
    if (runs && !maker.rests && (!options_.live || queue->empty())) {
      in_.notes.add(Gathered::note(found.origin, found.shown, "",
                                   "it runs already, and no Workload of the input says what quota "
                                   "it holds: it counts towards none"));
      return;
    }
    Workloads::Places& places = workloads_.claim(key);
    if (maker.unread) return;
    model::WorkloadSpec spec;
    spec.ns = maker.meta.ns;
    spec.name = maker.meta.name;
    spec.uid = maker.meta.uid;
    spec.unmade = options_.live;
    spec.queue = *queue;
    spec.owner = maker.owner;
    spec.created_ns = maker.meta.created_ns;
    if (queue->empty()) {
      spec.incomplete = "namespace " + spec.ns + " requires a queue, and " + spec.owner +
                        " names none: add the label " + std::string(kQueueLabel);
      spec.incomplete_reason = model::Reason::kQueueRequired;
    }
    if (!add_sets(found, *queue, spec) || spec.pod_sets.empty()) return;
    places.push_back(workloads_.add(std::move(spec)));
    workloads_.know_uid(places.back(), maker.meta.uid);
  }

  // False: it was refused.
  bool add_sets(Found<QueuedMaker>& found, const std::string& queue, model::WorkloadSpec& spec) {
    QueuedMaker& maker = found.object;
    if (auto bad =
            read_number_label(maker.meta, kMaxExecution, kMostSeconds, spec.max_execution_s)) {
      in_.refuse(found, bad->path, bad->message);
      return false;
    }
    bool has_class = false;  // of the first set that names one is its priority
    for (QueuedMaker::Set& from : maker.sets) {
      const std::string at = path_text(from.path) + '.';
      if (!references_.settle_priority(found, at, from.pod)) return false;
      const bool ranked = !from.pod.spec.priority_class.empty();
      if (spec.pod_sets.empty() || (ranked && !has_class)) spec.priority = from.pod.spec.priority;
      has_class = has_class || ranked;
      model::PodSetSpec set;
      set.name = from.name;
      set.count = from.count;
      if (auto bad =
              read_topology_ask(from.pod.meta, from.pod.member.topology, set.count, set.topology)) {
        in_.refuse(found, at + bad->path, bad->message);
        return false;
      }
      std::size_t room = 0;
      if (!workloads_.take_waiting(spec.ns, static_cast<std::size_t>(set.count), room)) {
        in_.refuse(found, path_text(from.path),
                   "found " + std::to_string(set.count) + " pods, want at most " +
                       std::to_string(room) + " more over all that waits in namespace " + spec.ns);
        return false;
      }
      model::PodSpec pod = workloads_.made_pod(found, at, from.pod, queue, spec.owner);
      pod.created_ns = maker.meta.created_ns;
      set.requests = quota_requests(pod, out_.queues.config);
      set.pod = std::make_shared<const model::PodSpec>(std::move(pod));
      spec.pod_sets.push_back(std::move(set));
    }
    return workloads_.class_priority(found, maker.meta, spec.priority);
  }

  // While it rests its templates may be changed: what waits asks for what its pods would ask for
  // now.
  void ask_as_now(const QueuedMaker& maker, const Workloads::Places& places) {
    if (places.size() != 1 || !maker.rests) return;
    model::WorkloadSpec& workload = out_.queues.workloads[places.front()];
    if (workload.admission) return;
    for (model::PodSetSpec& set : workload.pod_sets) {
      const auto now = std::find_if(maker.sets.begin(), maker.sets.end(),
                                    [&set](const auto& each) { return each.name == set.name; });
      if (now == maker.sets.end()) continue;
      for (const auto& [resource, amount] : quota_requests(now->pod.spec, out_.queues.config)) {
        set.requests[resource] = amount;
      }
      model::PodSpec pod = *set.pod;
      pod.gpu = now->pod.spec.gpu;
      set.pod = std::make_shared<const model::PodSpec>(std::move(pod));
      set.count = now->count;
    }
  }

  KnownQueues& queues_;
  const PodReferences& references_;
  Workloads& workloads_;
  NameSet running_;  // ns/owner of which a pod is bound
};

}  // namespace

void queue_makers(Resolution& all, KnownQueues& queues, const PodReferences& references,
                  Workloads& workloads) {
  MakerQueue(all, queues, references, workloads).run();
}

}  // namespace berth::kinds
