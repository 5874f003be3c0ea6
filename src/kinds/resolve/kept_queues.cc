#include "kinds/resolve/kept_queues.h"

#include <algorithm>
#include <optional>

#include "kinds/gpu_node.h"
#include "kinds/kind_table.h"

namespace berth::kinds {

namespace {

constexpr std::uint64_t kWhole = 0;  // the kin of everything
constexpr int kMostRounds = 8;       // of what one refresh finds out only by resolving

std::string_view last_part(std::string_view owner) { return owner.substr(owner.rfind('/') + 1); }

bool wait_for_volumes(const std::vector<PodObject>& templates) {
  return std::any_of(templates.begin(), templates.end(),
                     [](const PodObject& pod) { return !pod.claims.empty(); });
}

// An object's letter, and the shelf it is on.
char letter_of(const Shelves& shelves, const Shelf* shelf) {
  if (shelf == &shelves.jobs) return 'J';
  if (shelf == &shelves.makers) return 'M';
  if (shelf == &shelves.groups) return 'G';
  if (shelf == &shelves.workloads) return 'W';
  if (shelf == &shelves.volcano_jobs) return 'V';
  return shelf == &shelves.upstream_workloads ? 'U' : '\0';
}

}  // namespace

// The nodes of the set, each with its GPUs when it is asked for first.
class ObjectSet::State::KeptQueues::Nodes final : public KnownNodes {
 public:
  explicit Nodes(const State& set) : set_(set) {}

  void changed(const std::string& name) { known_.erase(name); }
  void read_labels() {
    labels_.clear();
    for (const auto& [label, count] : set_.label_keys) labels_.insert(label);
  }

  const model::NodeSpec* find(const std::string& name) const override {
    const auto [it, is_new] = known_.try_emplace(name);
    if (is_new) {
      const auto node = set_.shelves.nodes.objects.find("|/" + name);
      const auto agent = set_.shelves.gpu_nodes.objects.find("berth.dev|/" + name);
      const bool has_agent = agent != set_.shelves.gpu_nodes.objects.end();
      if (node != set_.shelves.nodes.objects.end()) {
        it->second = node->second->object.spec;
        fill_gpus(has_agent ? &agent->second->object : nullptr, *it->second);
      }
    }
    return it->second ? &*it->second : nullptr;
  }
  std::string label_of(const std::string& level) const override {
    return topology_key(level, labels_);
  }

 private:
  const Holding* holding_of(const std::string& uid) const override {
    const auto held = set_.holders.find(uid);
    return held == set_.holders.end() ? nullptr : &held->second;
  }

  const State& set_;
  mutable std::map<std::string, std::optional<model::NodeSpec>> known_;
  NameSet labels_;
};

ObjectSet::State::KeptQueues::KeptQueues(const State& set)
    : set_(set), nodes_(std::make_unique<Nodes>(set)) {}
ObjectSet::State::KeptQueues::~KeptQueues() = default;

std::unique_ptr<ObjectSet::State::QueueView> ObjectSet::State::QueueView::make(const State& set) {
  return std::make_unique<KeptQueues>(set);
}

// ---- what changed ----

bool ObjectSet::State::KeptQueues::object_changed(const Shelf* shelf, const std::string& key) {
  const char letter = letter_of(set_.shelves, shelf);
  if (letter != '\0') changed_.insert(letter + key);
  return letter != '\0';
}

void ObjectSet::State::KeptQueues::node_changed(const std::string& name) {
  nodes_->changed(name);
  const auto on = set_.pods_on.find(name);
  if (on != set_.pods_on.end()) {
    for (const std::string& pod : on->second) pod_changed(pod);
  }
  for (const auto& [pod, node] : believed_on_) {
    if (node == name) pod_changed(pod);
  }
}

void ObjectSet::State::KeptQueues::namespace_changed(const std::string& ns) {
  spaces_.insert(ns);
  rules_ = true;
}

void ObjectSet::State::KeptQueues::volumes_changed() {
  volumes_ = true;
  changed_.insert(with_claims_.begin(), with_claims_.end());
}

void ObjectSet::State::KeptQueues::everything_changed() { all_ = rules_ = volumes_ = true; }

// ---- following it ----

void ObjectSet::State::KeptQueues::make_facts() {
  const Shelves& s = set_.shelves;
  Gathered in = of_demands(s);
  s.flavors.give(in);
  s.cohorts.give(in);
  s.topologies.give(in);
  s.checks.give(in);
  s.workload_classes.give(in);
  s.priority_classes.give(in);
  s.volumes.give(in);
  s.claims.give(in);
  facts_ = std::make_unique<CommonFacts>(std::move(in), set_.live_options());
}

std::vector<std::string> ObjectSet::State::KeptQueues::names_of_pod(const std::string& key,
                                                                    const PlaceOf& believed) const {
  std::vector<std::string> out;
  const auto it = set_.pods.find(key);
  if (it == set_.pods.end()) return out;
  const LivePod& pod = it->second;
  const auto say = [&](std::string_view name) {
    if (!name.empty()) out.push_back(pod.ns + '/' + std::string(name));
  };
  const Meta& meta = pod.body->object.meta;
  say(pod.name);
  for (const Owner& owner : meta.owners) say(owner.name);
  say(last_part(pod.owner()));
  say(pod.group());
  say(label_value(meta, kGroupName));
  say(label_or_annotation(meta, kGroupName));
  for (const std::string& maker : makers_named_by(meta.labels)) say(last_part(maker));
  if (const std::string* by = meta.annotation(kWorkloadAnnotation)) say(*by);
  model::PodSpec charge;
  if (pod.is_charged()) read_charge(pod.charged, charge);
  if (pod.node.empty() && believed) read_charge(believed(key, pod).charged, charge);
  say(charge.let_in_by);
  return out;
}

std::vector<std::string> ObjectSet::State::KeptQueues::names_of(const std::string& object,
                                                                const PlaceOf& believed) const {
  const Shelves& s = set_.shelves;
  const std::string key = object.substr(1);
  std::string ns;
  std::vector<std::string> out;
  const auto say = [&](std::string_view name) {
    if (!name.empty()) out.push_back(ns + '/' + std::string(name));
  };
  const auto say_meta = [&](const Meta& meta) {
    ns = meta.ns;
    say(meta.name);
    for (const Owner& owner : meta.owners) say(owner.name);
  };
  const auto look = [&](const auto& shelf, const auto& read) {
    const auto it = shelf.objects.find(key);
    if (it != shelf.objects.end()) read(it->second->object);
  };
  switch (object.front()) {
    case 'P':
      return names_of_pod(key, believed);
    case 'J':
      look(s.jobs, [&](const JobObject& job) {
        say_meta(job.meta);
        say(job.pod.member.group);
      });
      break;
    case 'M':
      look(s.makers, [&](const QueuedMaker& maker) {
        say_meta(maker.meta);
        say(last_part(maker.owner));
      });
      break;
    case 'G':
      look(s.groups, [&](const GroupObject& group) {
        say_meta(group.meta);
        say(group.gang.name);
        say(group.workload);
      });
      break;
    case 'W':
      look(s.workloads, [&](const WorkloadObject& workload) {
        const model::WorkloadSpec& spec = workload.spec;
        ns = spec.ns;
        say(spec.name);
        for (const Owner& owner : workload.meta.owners) say(owner.name);
        say(last_part(spec.owner));
        say(last_part(spec.replaces));  // of this namespace, both
        say(last_part(spec.variant_of));
      });
      break;
    case 'V':
      look(s.volcano_jobs, [&](const VolcanoJob& job) { say_meta(job.meta); });
      break;
    default:
      look(s.upstream_workloads, [&](const UpstreamWorkload& w) { say_meta(w.meta); });
  }
  return out;
}

void ObjectSet::State::KeptQueues::follow(const PlaceOf& believed) {
  if (all_) {
    index_ = KinIndex();
    with_claims_.clear();
    believed_on_.clear();
    granted_.clear();
    nodes_->read_labels();
    const Shelves& s = set_.shelves;
    for (const auto& [key, pod] : set_.pods) pod_changed(key);
    for (const auto& [key, found] : s.jobs.objects) changed_.insert('J' + key);
    for (const auto& [key, found] : s.makers.objects) changed_.insert('M' + key);
    for (const auto& [key, found] : s.groups.objects) changed_.insert('G' + key);
    for (const auto& [key, found] : s.workloads.objects) changed_.insert('W' + key);
    for (const auto& [key, found] : s.volcano_jobs.objects) changed_.insert('V' + key);
    for (const auto& [key, found] : s.upstream_workloads.objects) changed_.insert('U' + key);
  }
  if (rules_ || volumes_) make_facts();
  for (const std::string& object : changed_) {
    const std::vector<std::string> names = names_of(object, believed);
    with_claims_.erase(object);
    if (names.empty()) {
      index_.remove(object);
      if (object.front() == 'P') believed_on_.erase(object.substr(1));
    } else {
      index_.put(object, names);
    }
  }
  for (const std::string& ns : spaces_) index_.touch_namespace(ns);
  changed_.clear();
  spaces_.clear();
  all_ = rules_ = volumes_ = false;
}

QueueChanges ObjectSet::State::KeptQueues::refresh(const PlaceOf& believed) {
  QueueChanges out;
  Before before;
  const bool is_whole = set_.has_other_queues();
  if (all_ || is_whole) {
    while (!kins_.empty()) forget(kins_.begin()->first, before);
  }
  out.rules = rules_ || is_whole || whole_ != nullptr;
  Pods told;
  if (is_whole) {
    everything_changed();
    resolve_whole(believed, before, told);
  } else {
    if (whole_) everything_changed();
    whole_.reset();
    follow(believed);
    for (int round = 0; round < kMostRounds; ++round) {
      resolve_fresh(believed, before, told);
      if (!settle_asks(before)) break;
    }
    resolve_fresh(believed, before, told);
  }
  out.beyond = before.beyond;
  for (const auto& [key, was] : before.workloads) {
    const auto now = workloads_.find(key);
    if (now == workloads_.end()) {
      if (was) out.gone.push_back(qualified(key.first, key.second));
    } else if (was && *was == *now->second.shown) {
      now->second.shown = was;
    } else {
      out.workloads.push_back(now->second.shown);
    }
  }
  for (const std::string& pod : before.pods) {
    if (!pods_.contains(pod)) out.gone_pods.push_back(pod);
  }
  for (auto& [key, pod] : told) {
    if (pods_.contains(key)) out.pods.push_back(std::move(pod));
  }
  return out;
}

// ---- a kin ----

void ObjectSet::State::KeptQueues::forget(std::uint64_t id, Before& before) {
  const auto kin = kins_.find(id);
  if (kin == kins_.end()) return;
  for (const Key& key : kin->second.workloads) {
    const auto workload = workloads_.find(key);
    before.workloads.try_emplace(key, std::move(workload->second.shown));
    workloads_.erase(workload);
    adjusted_.erase(key);
  }
  before.beyond = before.beyond || !kin->second.beyond.empty();
  for (const std::string& pod : kin->second.pods) {
    before.pods.insert(pod);
    pods_.erase(pod);
  }
  asking_.erase(id);
  kins_.erase(kin);
}

void ObjectSet::State::KeptQueues::resolve_fresh(const PlaceOf& believed, Before& before,
                                                 Pods& told) {
  for (int round = 0; round < kMostRounds; ++round) {
    const KinIndex::Changes changes = index_.take_changes();
    if (changes.gone.empty() && changes.fresh.empty()) return;
    for (const std::uint64_t id : changes.gone) forget(id, before);
    std::vector<std::pair<std::string, std::string>> ties;
    for (const KinIndex::Kin& kin : changes.fresh) {
      if (is_plain(kin, believed)) continue;
      KinInputs inputs = resolve_kin(gather(kin, believed), *nodes_, *facts_, granted_);
      std::string name = names_of(std::string(kin.objects.front()), believed).front();
      take_in(kin.id, std::move(name), std::move(inputs), before, told, ties);
    }
    for (const auto& [name, other] : ties) index_.tie(name, other);
  }
}

// Nothing of it waits in a queue or holds quota.
bool ObjectSet::State::KeptQueues::is_plain(const KinIndex::Kin& kin,
                                            const PlaceOf& believed) const {
  return std::all_of(kin.objects.begin(), kin.objects.end(), [&](std::string_view object) {
    if (object.front() != 'P') return false;
    const auto it = set_.pods.find(object.substr(1));
    if (it == set_.pods.end()) return true;
    const LivePod& pod = it->second;
    const bool charged = believed && pod.node.empty() && !believed(it->first, pod).charged.empty();
    return !charged && !set_.in_queue(pod) && !facts_->queues.requires_queue(pod.ns) &&
           !pod.body->object.meta.labels.contains(kLocalQueueLabel);
  });
}

Gathered ObjectSet::State::KeptQueues::gather(const KinIndex::Kin& kin, const PlaceOf& believed) {
  const Shelves& s = set_.shelves;
  Gathered out;
  const auto give = [](const auto& shelf, const std::string& key, auto& to) {
    to.push_back(*shelf.objects.at(key));
  };
  for (const std::string_view object : kin.objects) {
    const std::string key(object.substr(1));
    bool claims = false;
    switch (object.front()) {
      case 'P': {
        const LivePod& pod = set_.pods.at(key);
        if (pod.foreign && pod.node.empty() && !set_.in_queue(pod)) break;
        believed_on_.erase(key);
        if (!set_.give_pod(key, pod, believed, out)) break;
        const std::string& node = out.pods.back().object.spec.node_name;
        if (pod.node.empty() && !node.empty()) believed_on_.emplace(key, node);
        claims = pod.node.empty() && !pod.body->object.claims.empty();
        break;
      }
      case 'J':
        give(s.jobs, key, out.jobs);
        claims = !out.jobs.back().object.pod.claims.empty();
        break;
      case 'M':
        give(s.makers, key, out.makers);
        for (const QueuedMaker::Set& set : out.makers.back().object.sets) {
          claims = claims || !set.pod.claims.empty();
        }
        break;
      case 'G':
        give(s.groups, key, out.groups);
        break;
      case 'W': {
        const auto& found = s.workloads.objects.at(key);
        if (set_.left_for_good(found->object)) break;
        if (!found->object.spec.finished) {
          out.workloads.push_back(*found);
          claims = wait_for_volumes(found->object.templates);
        } else if (!found->object.meta.owners.empty()) {
          out.workloads.push_back(slim(*found));
        }
        break;
      }
      case 'V':
        give(s.volcano_jobs, key, out.volcano_jobs);
        break;
      default:
        give(s.upstream_workloads, key, out.upstream_workloads);
    }
    if (claims) with_claims_.emplace(object);
  }
  return out;
}

void ObjectSet::State::KeptQueues::take_in(std::uint64_t id, std::string name, KinInputs&& from,
                                           Before& before, Pods& told,
                                           std::vector<std::pair<std::string, std::string>>& ties) {
  Kin kin{.name = std::move(name),
          .workloads = {},
          .pods = {},
          .beyond = std::move(from.beyond),
          .asks = std::move(from.asks)};
  before.beyond = before.beyond || !kin.beyond.empty();
  for (model::WorkloadSpec& spec : from.workloads) {
    Key key(spec.ns, spec.name);
    const auto [it, is_new] = workloads_.try_emplace(key);
    if (!is_new) {
      ties.emplace_back(kin.name, kins_.at(it->second.kin).name);
      continue;
    }
    it->second.resolved = std::make_shared<const model::WorkloadSpec>(std::move(spec));
    it->second.shown = it->second.resolved;
    it->second.kin = id;
    before.workloads.try_emplace(key);
    kin.workloads.push_back(std::move(key));
  }
  for (model::PodSpec& pod : from.pods) {
    std::string key = qualified(pod.ns, pod.name);
    const auto live = set_.pods.find(key);
    if (live == set_.pods.end() || !set_.in_queue(live->second)) continue;
    kin.pods.insert(key);
    pods_.insert(key);
    told.insert_or_assign(std::move(key), std::move(pod));
  }
  if (!kin.asks.empty()) asking_.insert(id);
  kins_.emplace(id, std::move(kin));
}

void ObjectSet::State::KeptQueues::resolve_whole(const PlaceOf& believed, Before& before,
                                                 Pods& told) {
  Gathered all;
  for (const Shelf* shelf : set_.shelves.all()) {
    if (shelf != &set_.shelves.workloads) shelf->give(all);
  }
  for (const auto& [key, found] : set_.shelves.workloads.objects) {
    if (set_.left_for_good(found->object)) continue;
    if (!found->object.spec.finished) {
      all.workloads.push_back(*found);
    } else if (!found->object.meta.owners.empty()) {
      all.workloads.push_back(slim(*found));
    }
  }
  set_.give_pods(believed, all);
  Inputs inputs = resolve(std::move(all), set_.live_options());
  KinInputs out{.workloads = std::move(inputs.queues.workloads),
                .pods = std::move(inputs.pods),
                .beyond = std::move(inputs.beyond),
                .asks = {}};
  whole_ = std::make_unique<model::QueueRules>(std::move(inputs.queues));
  std::vector<std::pair<std::string, std::string>> none;
  take_in(kWhole, "", std::move(out), before, told, none);
}

// ---- what is left of quota ----

void ObjectSet::State::KeptQueues::show(const Key& key, Spec spec, Before& before) {
  Workload& workload = workloads_.at(key);
  before.workloads.try_emplace(key, workload.shown);
  workload.shown = std::move(spec);
}

// Whatever pods have beyond what they were let in with, in one order over all kins. True: some pod
// may have what it was resolved without, or the other way round; its kin is to be resolved again.
bool ObjectSet::State::KeptQueues::settle_asks(Before& before) {
  if (asking_.empty() && adjusted_.empty() && granted_.empty()) return false;
  QuotaLeft left(rules());
  for (const auto& [key, workload] : workloads_) {
    // What is left behind counts by itself, after this.
    if (!workload.resolved->leftover) left.hold(*workload.resolved);
  }
  struct Turn {
    const QuotaAsks::Of* of;
    const QuotaAsks::More* more;  // first, of what one pod asks
    const QuotaAsks::Actual* actual;
  };
  std::vector<Turn> turns;
  for (const std::uint64_t id : asking_) {
    const QuotaAsks& asks = kins_.at(id).asks;
    for (const QuotaAsks::More& each : asks.more) turns.push_back({&each.of, &each, nullptr});
    for (const QuotaAsks::Actual& each : asks.actual) turns.push_back({&each.of, nullptr, &each});
  }
  std::stable_sort(turns.begin(), turns.end(),
                   [](const Turn& x, const Turn& y) { return *x.of < *y.of; });
  std::map<Key, model::WorkloadSpec> adjusted;
  NameSet granted;
  bool other = false;
  for (const Turn& turn : turns) {
    if (turn.more != nullptr) {
      const bool fits = left.take(turn.more->queue, turn.more->asks);
      if (fits) granted.insert(turn.more->key);
      if (fits == turn.more->granted) continue;
      index_.touch('P' + qualified(turn.of->ns, turn.of->pod));
      other = true;
      continue;
    }
    const QuotaAsks::Actual& ask = *turn.actual;
    const Key key(turn.of->ns, std::string(last_part(ask.workload)));
    const auto known = workloads_.find(key);
    if (known == workloads_.end() || !known->second.resolved->admission) continue;
    const auto [it, is_new] = adjusted.try_emplace(key);
    if (is_new) it->second = *known->second.resolved;
    for (model::PodSetAdmission& held : it->second.admission->pod_sets) {
      if (held.name != ask.set) continue;
      const auto used = held.usage.find(ask.resource);
      if (used == held.usage.end() || !held.flavors.contains(ask.resource)) continue;
      const std::int64_t beyond = ask.amount - used->second;
      if (beyond <= 0) continue;
      used->second += left.take_most(it->second.admission->queue,
                                     {held.flavors.at(ask.resource), ask.resource, beyond});
    }
  }
  for (const Key& key : std::exchange(adjusted_, {})) {
    if (!adjusted.contains(key)) show(key, workloads_.at(key).resolved, before);
  }
  for (auto& [key, spec] : adjusted) {
    adjusted_.insert(key);
    if (*workloads_.at(key).shown == spec) continue;
    show(key, std::make_shared<const model::WorkloadSpec>(std::move(spec)), before);
  }
  granted_ = std::move(granted);
  return other;
}

// ---- what is there ----

const model::QueueRules& ObjectSet::State::KeptQueues::rules() const {
  return whole_ ? *whole_ : facts_->rules();
}

Queues ObjectSet::State::KeptQueues::queues() const {
  Queues out{.rules = &rules(), .workloads = {}, .beyond = {}};
  std::set<std::string_view> behind;  // "ns/name"
  for (const std::string_view key : set_.lanes.behind(WaitingLanes::kMostSeen)) {
    behind.insert(key.substr(key.find('|') + 1));
  }
  out.workloads.reserve(workloads_.size());
  // What waits in a namespace has a bound, as in files: there the one that comes first has it.
  const std::size_t most = set_.live_options().max_job_pods;
  std::string_view ns;
  std::size_t waiting = 0;
  for (const auto& [key, workload] : workloads_) {
    const model::WorkloadSpec& spec = *workload.shown;
    if (std::exchange(ns, key.first) != key.first) waiting = 0;
    if (!spec.admission) {
      std::size_t pods_of = 0;
      for (const model::PodSetSpec& each : spec.pod_sets) {
        pods_of += static_cast<std::size_t>(std::max(0, each.count));
      }
      if (waiting + pods_of > most) continue;
      waiting += pods_of;
    }
    const bool waits = !behind.empty() && !spec.admission;
    if (waits && behind.contains(qualified(key.first, key.second))) continue;
    out.workloads.push_back(workload.shown);
  }
  for (const auto& [id, kin] : kins_) {
    out.beyond.insert(out.beyond.end(), kin.beyond.begin(), kin.beyond.end());
  }
  std::sort(out.beyond.begin(), out.beyond.end());
  return out;
}

}  // namespace berth::kinds
