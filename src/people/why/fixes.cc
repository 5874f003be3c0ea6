#include "people/why/fixes.h"

#include <algorithm>
#include <optional>
#include <set>

#include "kinds/quota_requests.h"
#include "people/why/changed_objects.h"
#include "people/why/partial_reading.h"

namespace berth::people {

namespace {

// How many trials one answer may cost, so that its time has a bound.
constexpr int kMostTrials = 36;
constexpr int kMostPairTrials = 24;
constexpr int kMostFirstSteps = 4;
// So many changes of a kind that would do, were it not for others who take what they give.
constexpr int kMostTaken = 2;
constexpr std::size_t kMostRefused = 3;

void edit_object(const Situation& s, Draft& draft, const TemplatePlace& place,
                 const ObjectEdit& edit) {
  Tree* tree = draft.edit(s.objects(), place.kind, place.ns, place.name);
  Tree* at = below(tree, place.path);
  if (at == nullptr) return;
  (*at)["metadata"];  // made where there is none: references hold from here on
  (*at)["spec"];
  edit((*at)["metadata"], (*at)["spec"]);
  if ((*at)["metadata"].is_null()) at->erase("metadata");
}

// Objects made from a template that has changed: whoever made them makes them anew.
void drop_made(const Situation& s, Draft& draft) {
  const bool by_job = std::any_of(s.unit.places.begin(), s.unit.places.end(),
                                  [](const TemplatePlace& p) { return p.kind == "Job"; });
  if (!by_job) return;
  for (const model::PodSpec* pod : s.unit.pending) {
    draft.remove(s.objects(), "Pod", pod->ns, pod->name);
  }
  if (s.unit.queued != nullptr) {
    draft.remove(s.objects(), "Workload", s.unit.ns, s.unit.queued->name);
  }
}

enum class Tried : std::uint8_t { kTaken, kYes };  // kTaken: by others who wait too

// What is said before nodes are asked: no change of theirs alone helps.
bool before_nodes(model::Reason reason) {
  const Stage stage = facts_of(reason).stage;
  return stage == Stage::kGate || stage == Stage::kQuota;
}

bool changes_nodes(std::string_view kind) {
  static constexpr std::string_view kKinds[] = {"add-nodes",  "untaint",     "uncordon",
                                                "repair-gpu", "repair-node", "repartition"};
  return std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds);
}

// What people are told to change; nothing that stays the same.
std::vector<ObjectChange> changes_of(Draft draft) {
  std::erase_if(draft.objects,
                [](const ObjectChange& c) { return c.before && c.after && *c.before == *c.after; });
  return std::move(draft.objects);
}

// Whether a change of the kind goes against the reason; what is not listed may help anything.
bool mends(std::string_view kind, model::Reason reason) {
  using model::Reason;
  struct Row {
    Reason reason;
    std::initializer_list<std::string_view> kinds;
  };
  static const Row kRows[] = {
      {Reason::kTaintNotTolerated, {"tolerate", "untaint", "repair-node"}},
      {Reason::kNodeSelectorMismatch, {"drop-selector", "other-selector", "flavor-labels"}},
      {Reason::kNodeAffinityMismatch, {"drop-affinity"}},
      {Reason::kVolumeUnreachable, {"drop-volume"}},
      {Reason::kVolumeMissing, {"drop-volume", "claim", "other-claim"}},
      {Reason::kGpuModelMismatch, {"any-model"}},
      {Reason::kGated, {"remove-gate"}},
      {Reason::kSuspended, {"unsuspend"}},
      {Reason::kDeactivated, {"activate"}},
      {Reason::kAdmissionGated, {"remove-gate"}},
      {Reason::kPreemptionGated, {"remove-gate"}},
      {Reason::kOnHold, {"resume-queue", "other-queue"}},
      {Reason::kMisconfigured,
       {"remove-field", "other-class", "create-class", "one-way", "create-group", "create-queue",
        "open-queue", "label-namespace", "other-queue", "other-flavor", "create-flavor",
        "drop-checks", "drop-node-name", "flavor-topology", "create-topology"}},
      {Reason::kQueueRequired, {"other-queue"}},
      {Reason::kQueueNotAllowed, {"open-queue", "other-queue"}},
      {Reason::kNoMatchingFlavor,
       {"tolerate", "flavor-taints", "flavor-labels", "cover-resource", "other-queue",
        "drop-selector", "other-selector", "drop-affinity", "fewer-resources", "other-resource",
        "other-level", "drop-topology"}},
      {Reason::kNeverFits,
       {"fewer-gpus", "fewer-resources", "other-resource", "smaller-gang", "fewer-pods",
        "prefer-topology", "repartition", "add-nodes"}},
  };
  for (const Row& row : kRows) {
    if (row.reason != reason) continue;
    return std::find(row.kinds.begin(), row.kinds.end(), kind) != row.kinds.end();
  }
  return true;
}

class FixSearch {
 public:
  explicit FixSearch(const Situation& s) : s_(s) {}

  FoundFixes run() {
    propose_server(s_, proposals_);
    propose_gates(s_, proposals_);
    propose_rules(s_, proposals_);
    propose_sizes(s_, proposals_);
    propose_devices(s_, proposals_);
    propose_queues(s_, proposals_);
    propose_flavors(s_, proposals_);
    propose_topology(s_, proposals_);
    propose_nodes(s_, proposals_);
    propose_holders(s_, proposals_);
    std::stable_sort(proposals_.begin(), proposals_.end(),
                     [](const auto& a, const auto& b) { return a.disturbance < b.disturbance; });
    s_.trials.focus(s_.unit);
    const int start = s_.trials.count();
    std::map<std::string, int> found;  // by kind
    for (const Proposal& proposal : proposals_) {
      if (fixes_.size() >= s_.options.most_fixes || s_.trials.count() - start >= kMostTrials) break;
      if (found[proposal.kind] >= (proposal.larger ? 1 : 2) || is_told(proposal.title)) continue;
      if (changes_nodes(proposal.kind) && before_nodes(s_.reason)) continue;
      if (proposal.kind == "delete-pod" && may_move(proposal)) continue;
      if (!is_hopeless(proposal) && try_one({&proposal})) {
        ++found[proposal.kind];
      } else {
        in_vain_.push_back(proposal.title);
      }
    }
    if (fixes_.empty()) try_pairs();
    if (fixes_.empty()) try_behind();
    std::stable_sort(fixes_.begin(), fixes_.end(), [](const Fix& a, const Fix& b) {
      return std::pair(a.disturbance, a.restarts) < std::pair(b.disturbance, b.restarts);
    });
    return {std::move(fixes_), std::move(in_vain_), std::move(refused_)};
  }

 private:
  struct Seen {
    bool first_look = false;     // Trials::quick
    std::optional<Tried> tried;  // and the whole decision
    int victims = 0;
  };

  // Where the largest of a row of growing changes does not help, alone or beside others who take
  // what it gives, no smaller one is tried; of other changes whose gain others take, only a few.
  bool is_hopeless(const Proposal& proposal) {
    const auto taken = taken_.find(proposal.kind);
    if (!proposal.larger) return taken != taken_.end() && taken->second >= kMostTaken;
    const auto largest = std::find_if(proposals_.rbegin(), proposals_.rend(), [&](const auto& p) {
      return p.larger && p.row == proposal.row;
    });
    const auto [known, fresh] = known_.try_emplace(&*largest);
    Seen& seen = known->second;
    const bool whole = taken != taken_.end() && &*largest != &proposal;
    Draft draft;
    if ((fresh || (whole && !seen.tried)) && !largest->apply(draft)) return true;
    if (fresh) seen.first_look = s_.trials.quick(draft, s_.unit);
    if (!seen.first_look) return true;
    if (!whole) return false;
    if (!seen.tried) try_draft(draft, seen);
    return *seen.tried != Tried::kYes;
  }

  // A draft that the first look did not refuse.
  void try_draft(const Draft& draft, Seen& seen) const {
    const TrialOutcome outcome = s_.trials.run(draft, s_.unit, false);
    seen.victims = outcome.victims;
    seen.tried = outcome.starts ? Tried::kYes : Tried::kTaken;
  }

  Seen look_at(const std::vector<const Proposal*>& parts, const Draft& draft) const {
    const auto known = parts.size() == 1 ? known_.find(parts.front()) : known_.end();
    Seen seen;
    if (known != known_.end()) {
      seen = known->second;
    } else {
      seen.first_look = s_.trials.quick(draft, s_.unit);
    }
    if (seen.first_look && !seen.tried) try_draft(draft, seen);
    return seen;
  }

  bool try_one(const std::vector<const Proposal*>& parts) {
    Draft draft;
    Fix fix;
    fix.disturbance = 0;
    for (const Proposal* part : parts) {
      if (!part->apply(draft)) return false;
      fix.title += (fix.title.empty() ? "" : ", and ") + part->title;
      fix.kind += (fix.kind.empty() ? "" : "+") + part->kind;
      fix.disturbance += part->disturbance;
      fix.restarts += part->restarts;
    }
    const bool objects_only =
        std::any_of(parts.begin(), parts.end(), [](const Proposal* p) { return p->objects_only; });
    if (objects_only && !s_.options.reread) return false;
    Seen seen;
    if (!objects_only) {
      seen = look_at(parts, draft);
      if (seen.tried == Tried::kTaken) ++taken_[fix.kind];
      if (seen.tried != Tried::kYes) return false;
    }
    fix.restarts += seen.victims;
    fix.changes = changes_of(std::move(draft));
    if (!stands_a_second_look(fix.changes)) return false;
    if (parts.size() == 1 && parts.front()->takes.size() == 1) tell_refused(*parts.front());
    if (fix.kind == "move-pod") moved_.insert(parts.front()->takes.front());
    fixes_.push_back(std::move(fix));
    return true;
  }

  // Whose leaving helps, and why the decision does not make him leave.
  void tell_refused(const Proposal& proposal) {
    const auto refused = refused_preemption(s_, proposal.takes.front());
    if (!refused || refused_.size() >= kMostRefused) return;
    const bool told = std::any_of(refused_.begin(), refused_.end(), [&](const Refused& other) {
      return other.title == refused->title;
    });
    if (!told) refused_.push_back(*refused);
  }

  // It is enough to move the pod: nobody need delete it for good.
  bool may_move(const Proposal& proposal) const {
    return proposal.takes.size() == 1 && moved_.contains(proposal.takes.front());
  }

  bool stands_a_second_look(const std::vector<ObjectChange>& changes) const {
    if (!s_.options.reread) return true;
    if (const auto read = s_.options.partial ? s_.options.partial(changes) : std::nullopt) {
      return read->ok() && starts(**read);
    }
    const Result<kinds::Inputs> inputs = s_.options.reread(changes);
    return inputs.ok() && starts_in(*inputs, s_.options.plan, s_.subject);
  }

  bool is_told(const std::string& title) const {
    return std::any_of(fixes_.begin(), fixes_.end(),
                       [&](const Fix& fix) { return fix.title == title; });
  }

  bool goes_against(const Proposal& proposal, model::Reason reason) const {
    if (s_.held != nullptr && reason == s_.held->reason) return proposal.against_held;
    return mends(proposal.kind, reason);
  }

  // Two changes at once, where no single one works.
  void try_pairs() {
    const int start = s_.trials.count();
    std::vector<std::pair<const Proposal*, const Proposal*>> pairs;
    for (std::size_t i = 0; i < proposals_.size(); ++i) {
      for (std::size_t j = i + 1; j < proposals_.size(); ++j) {
        const Proposal &a = proposals_[i], &b = proposals_[j];
        if (a.kind == b.kind || (!goes_against(a, s_.reason) && !goes_against(b, s_.reason))) {
          continue;
        }
        pairs.emplace_back(&proposals_[i], &proposals_[j]);
      }
    }
    std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) {
      return a.first->disturbance + a.second->disturbance <
             b.first->disturbance + b.second->disturbance;
    });
    for (const auto& [first, second] : pairs) {
      if (fixes_.size() >= 2 || s_.trials.count() - start >= kMostPairTrials) return;
      try_one({first, second});
    }
  }

  // Where a cause hides what comes next, so that nobody could propose against it: the first is
  // mended, and fixes are looked for in what is there then. Nobody proposes against the rules of
  // nodes that are too small either, so a smaller size may come first too.
  void try_behind() {
    if (!s_.options.reread || s_.objects() == nullptr || s_.options.most_steps < 2) return;
    for (const model::Reason reason : {s_.reason, model::Reason::kNeverFits}) {
      int steps = 0;
      for (const Proposal& first : proposals_) {
        if (fixes_.size() >= 2 || steps >= kMostFirstSteps) break;
        Draft draft;
        if (!goes_against(first, reason) || !first.apply(draft)) continue;
        const std::vector<ObjectChange> changes = changes_of(std::move(draft));
        if (!changes.empty() && try_after(first, changes)) ++steps;
      }
      if (!fixes_.empty()) return;
    }
  }

  Result<kinds::Inputs> as_written(const std::vector<ObjectChange>& changes) const {
    const auto& options = s_.options;
    return options.reread_as_written ? options.reread_as_written(changes) : options.reread(changes);
  }

  // What is asked of the objects as the changes leave them; an error when they cannot be read.
  Result<Answer> ask_after(const std::vector<ObjectChange>& changes) const {
    const ChangedObjects objects(*s_.objects(), changes);
    WhyOptions options = s_.options;
    options.objects = &objects;
    options.most_fixes = 1;
    options.most_steps = s_.options.most_steps - 1;
    // What comes next may be a rule of the API server: it is for the next look to say so.
    options.reread = [&](const std::vector<ObjectChange>& more) {
      return as_written(one_after_the_other(changes, more));
    };
    options.reread_part = nullptr;
    if (auto read =
            s_.options.partial_as_written ? s_.options.partial_as_written(changes) : std::nullopt) {
      BERTH_TRY(const PartialReading found, std::move(*read));
      options.reread_part = [&](const std::vector<ObjectChange>& more, const kinds::Bound& also) {
        return s_.options.reread_part(one_after_the_other(changes, more), also);
      };
      return why_after(found, options, s_.subject);
    }
    BERTH_TRY(const kinds::Inputs inputs, as_written(changes));
    return Examiner(inputs, std::move(options)).why(s_.subject);
  }

  bool try_after(const Proposal& first, const std::vector<ObjectChange>& changes) {
    const Result<Answer> next = ask_after(changes);
    if (!next.ok()) return false;
    if (next->fixes.empty()) return true;
    Fix fix = next->fixes.front();
    fix.title = first.title + ", and " + fix.title;
    fix.kind = first.kind + '+' + fix.kind;
    fix.disturbance += first.disturbance;
    fix.restarts += first.restarts;
    fix.changes = one_after_the_other(changes, fix.changes);
    fixes_.push_back(std::move(fix));
    return true;
  }

  const Situation& s_;
  Proposals proposals_;
  std::vector<Fix> fixes_;
  std::vector<std::string> in_vain_;
  std::vector<Refused> refused_;
  std::set<std::string> moved_;            // pods
  std::map<std::string, int> taken_;       // by kind: would do, were it not for others
  std::map<const Proposal*, Seen> known_;  // of the largest of rows
};

}  // namespace

model::QueueRules& edit_rules(const Situation& s, Draft& draft) {
  if (!draft.queues) draft.queues = std::make_shared<model::QueueRules>(s.inputs().queues);
  return *draft.queues;
}

model::WorkloadSpec* edit_queued(const Situation& s, Draft& draft) {
  if (s.unit.queued == nullptr) return nullptr;
  return &draft.workloads.try_emplace(s.unit.decided, *s.unit.queued).first->second;
}

void for_each_amounts(Tree& spec, const std::function<void(Tree& amounts)>& edit) {
  for (const char* list : {"containers", "initContainers"}) {
    if (spec.find(list) == nullptr) continue;
    for (Tree& container : spec[list].items()) {
      Tree* resources = container.find("resources");
      for (const char* which : {"limits", "requests"}) {
        Tree* amounts = resources == nullptr ? nullptr : resources->find(which);
        if (amounts != nullptr) edit(*amounts);
      }
    }
  }
}

bool edit_pods(const Situation& s, Draft& draft, const ModelEdit& model, const ObjectEdit& object) {
  if (model::WorkloadSpec* spec = edit_queued(s, draft)) {
    const model::QueueConfig& config = draft.rules(s.inputs().queues).config;
    for (model::PodSetSpec& set : spec->pod_sets) {
      model::PodSpec pod = *set.pod;
      model(pod);
      set.requests = kinds::quota_requests(pod, config);
      set.pod = std::make_shared<const model::PodSpec>(std::move(pod));
    }
  }
  for (const model::PodSpec* pod : s.unit.pending) {
    const std::string name = pod->ns + '/' + pod->name;
    model(draft.pods.try_emplace(name, *pod).first->second);
  }
  for (const TemplatePlace& place : s.unit.places) edit_object(s, draft, place, object);
  drop_made(s, draft);
  return true;
}

FoundFixes find_fixes(const Situation& s) { return FixSearch(s).run(); }

}  // namespace berth::people
