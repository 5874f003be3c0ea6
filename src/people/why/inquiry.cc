#include "people/why/inquiry.h"

#include <fmt/format.h>

#include <algorithm>

#include "kinds/counted.h"
#include "people/view/words.h"
#include "people/why/attach.h"
#include "people/why/autoscaler.h"
#include "people/why/cause.h"
#include "people/why/changed_objects.h"
#include "people/why/details.h"
#include "people/why/endings.h"
#include "people/why/fixes.h"
#include "people/why/pod_template.h"
#include "text/path.h"

namespace berth::people {

using model::Constraint;
using model::Outcome;
using model::PodSpec;
using model::Reason;

namespace {

// Reasons that one constraint gives on nodes, and what the decision makes of them.
bool about_nodes(Reason reason) {
  const bool constraint = reason >= Reason::kNodeNotReady && reason <= Reason::kNumaMisaligned;
  return constraint || reason == Reason::kFragmented || reason == Reason::kNeverFits;
}

// What keeps the one off a node keeps the other off it too.
bool goes_where(const PodSpec& a, const PodSpec& b) {
  return a.node_selector == b.node_selector && a.required_nodes == b.required_nodes &&
         a.tolerations == b.tolerations && a.gpu_models == b.gpu_models &&
         a.gpu_min_memory_mib == b.gpu_min_memory_mib && a.gpu == b.gpu &&
         a.requests == b.requests && a.affinity == b.affinity &&
         a.anti_affinity == b.anti_affinity && a.spread == b.spread &&
         a.host_ports == b.host_ports && a.volumes == b.volumes &&
         a.volume_missing == b.volume_missing;
}

// The pod whose nodes are shown, and what it finds there.
struct Look {
  model::SnapshotBuilder builder;
  const model::ClusterState* state = nullptr;
  std::optional<NodePicture> picture;
  model::ShapeRef shape = nullptr;
  PodSpec sample;
};

class Inquiry {
 public:
  Inquiry(const WhyOptions& options, Trials& trials, Unit unit, Subject subject, bool nested,
          std::optional<Held> held = {})
      : options_(options),
        trials_(trials),
        unit_(std::move(unit)),
        subject_(std::move(subject)),
        nested_(nested),
        held_(std::move(held)),
        placer_(trials.policy().placement) {
    answer_.kind = unit_.kind;
    answer_.ns = unit_.ns;
    answer_.name = unit_.name;
    answer_.evaluated_ns = options.plan.now_ns;
    answer_.evidence = {.objects = unit_.objects,
                        .decided = options.decided,
                        .digest = options.digest,
                        .replay = options.replay,
                        .partial = options.unseen};
    answer_.start.because = "nothing that it waits for says how long it takes";
    answer_.have.nodes = static_cast<int>(trials.inputs().nodes.size());
    if (const PodSpec* pod = unit_.sample()) look_.sample = *pod;
    const bool waits = unit_.state != Unit::State::kEnded && unit_.state != Unit::State::kRunning;
    if (!nested && waits && options.objects != nullptr) {
      answer_.autoscaler = autoscaler_of(*options.objects, unit_, look_.sample);
    }
    if (held_) answer_.rule = {std::string(kind_behind(*held_)), held_->message};
    if (options.model_first && !held_ && unit_.state == Unit::State::kPending) {
      by_model_ = options;
      by_model_->reread = nullptr;
      by_model_->partial = by_model_->partial_as_written = nullptr;
    }
  }

  Answer run() {
    examine();
    if (answer_.autoscaler) keep_few_pools(*answer_.autoscaler);
    return std::move(answer_);
  }

 private:
  void examine() {
    answer_.need = need_of(unit_);
    const bool may_be_held = unit_.state == Unit::State::kPending ||
                             unit_.state == Unit::State::kRunning ||
                             unit_.state == Unit::State::kUnmade;
    if (held_ && may_be_held) {
      by_server();
      return;
    }
    switch (unit_.state) {
      case Unit::State::kRunning:
        running();
        break;
      case Unit::State::kEnded:
        answer_.standing = Standing::kRunning;
        answer_.line = unit_.full() + (!unit_.told.empty()     ? ' ' + unit_.told
                                       : unit_.pending.empty() ? " has ended"
                                                               : " is being deleted");
        answer_.start.because = unit_.pending.empty() ? "it has ended" : "it is being deleted";
        break;
      case Unit::State::kSuspended:
        blame(Reason::kSuspended, unit_.told, false);
        answer_.start.because = "it does not wait for time";
        look_behind(unsuspended(options_.objects, unit_));
        search();
        break;
      case Unit::State::kUnmade:
        blame(Reason::kPendingEvaluation, "its pods are yet to be made", false);
        answer_.stage = Stage::kGate;
        answer_.start.because = "that depends on who makes its pods";
        break;
      case Unit::State::kInvalid:
        invalid_object();
        break;
      case Unit::State::kRefused:
        refused();
        break;
      case Unit::State::kPending:
        pending();
        break;
    }
  }

  void blame(Reason reason, std::string message, bool never) {
    answer_.reason = reason;
    answer_.stage = facts_of(reason).stage;
    answer_.standing = standing_of(reason, never);
    if (message.empty()) message = facts_of(reason).means;
    answer_.message = std::move(message);
    const char* verb = answer_.standing == Standing::kNever           ? "never fits"
                       : answer_.standing == Standing::kMisconfigured ? "cannot start"
                                                                      : "waits";
    answer_.line =
        fmt::format("{} {}: {} ({})", unit_.full(), verb, answer_.message, model::name(reason));
  }

  void running() {
    answer_.start.because = "it runs";
    for (const PodSpec* pod : unit_.running) {
      if (!nodes_hidden() && !trials_.before().inventory().slot(pod->node_name)) {
        blame(Reason::kNodeNameNotFound, fmt::format("its node {} does not exist", pod->node_name),
              false);
        answer_.start.because = "not without a change";
        return search();
      }
    }
    answer_.standing = Standing::kRunning;
    answer_.where = where_it_runs(trials_, unit_);
    const PodSpec& first = *unit_.running.front();
    answer_.line = unit_.running.size() == 1
                       ? fmt::format("{} runs on {}", unit_.full(), first.node_name)
                       : fmt::format("{} runs: {}", unit_.full(),
                                     show_count(static_cast<int>(unit_.running.size()), "pod"));
    const auto& nodes = trials_.inputs().nodes;
    const auto node = std::find_if(nodes.begin(), nodes.end(), [&](const model::NodeSpec& each) {
      return each.name == first.node_name;
    });
    const bool lost = unit_.running.size() == 1 && node != nodes.end() && !node->ready;
    if (lost) answer_.line += ", which is not Ready: what it does there is not known";
    const bool leaves = std::all_of(unit_.running.begin(), unit_.running.end(),
                                    [](const PodSpec* pod) { return pod->terminating; });
    if (leaves) answer_.line += ", and is being deleted";
    say_unread();
    if (first.started_ns > 0) answer_.since_ns = first.started_ns;
  }

  // What of a pod that runs cannot be read: it holds more than it may need to.
  void say_unread() {
    for (const PodSpec* pod : unit_.running) {
      const std::string name = "Pod " + pod->ns + '/' + pod->name;
      for (const kinds::Note& note : trials_.inputs().warnings) {
        if (note.object != name || !note.message.ends_with(kinds::kPodCounts)) continue;
        answer_.line += "; " + note.path + ": " + note.message;
        return;
      }
    }
  }

  void invalid_object() {
    const auto text = [](const kinds::Note& note) {
      return (note.path.empty() ? "" : note.path + ": ") + note.message;
    };
    blame(Reason::kMisconfigured, text(*unit_.complaints.front()), false);
    answer_.start.because = "it must be corrected first";
    look_behind(without_complaints(options_.objects, unit_));
    search();
  }

  // What the API server refuses, or nobody binds: the model knows nothing of it.
  void by_server() {
    Answer behind;
    if (unit_.queued != nullptr) {
      pending();
      if (answer_.reason != Reason::kPendingEvaluation) {
        return add_cause(held_->reason, held_->message);
      }
    } else {
      behind = Inquiry(options_, trials_, unit_, subject_, true).run();
      answer_.since_ns = behind.since_ns;
    }
    blame(held_->reason, held_->message, held_->never);
    if (behind.reason != Reason::kPendingEvaluation) add_cause(behind.reason, behind.message);
    for (const Cause& cause : behind.also) add_cause(cause.reason, cause.message);
    search();
    answer_.start = start_by_quota();
  }

  // What ends in a namespace gives back what its ResourceQuota counts.
  Start start_by_quota() const {
    const bool waits = held_->by == Held::By::kQuota && !held_->never && options_.reread;
    if (nested_ || !waits) return {.at_ns = std::nullopt, .because = "it does not wait for time"};
    Endings endings = endings_of(trials_.inputs(), options_.objects, options_.plan.now_ns,
                                 [this](const PodSpec& pod) { return pod.ns == unit_.ns; });
    std::erase_if(endings.ends, [](const Ending& ending) { return ending.workload; });
    bool spent = false;  // the objects are not read anew that often
    Start out = earliest_start(endings, [&](std::span<const Ending> ended) {
      Draft draft;
      for (const Ending& ending : ended) {
        draft.remove(options_.objects, "Pod", unit_.ns, ending.name.substr(unit_.ns.size() + 1));
      }
      if (const auto read = read_partially(draft.objects))
        return read->ok() && people::starts(**read);
      const Result<kinds::Inputs> then = options_.reread(draft.objects);
      spent = spent || (!then.ok() && then.error().code() == Code::kExhausted);
      return then.ok() && starts_in(*then, options_.plan, subject_);
    });
    if (!spent) return out;
    return {.at_ns = std::nullopt, .because = "the cluster is too large to try what ends in it"};
  }

  // What the kubelet says of a pod that is bound.
  void refused() {
    const Refusal refusal = refusal_of(unit_);
    blame(refusal.started ? Reason::kContainersNotStarted : Reason::kNodeRefused, refusal.message,
          false);
    answer_.start.because = "that depends on its node";
  }

  void pending() {
    TrialOutcome outcome = outcome_of(trials_.decision(), unit_, unit_.pending_names());
    const PodSpec* sample = unit_.sample();
    if (sample != nullptr && sample->created_ns > 0) answer_.since_ns = sample->created_ns;
    if (unit_.queued != nullptr && unit_.queued->created_ns > 0) {
      answer_.since_ns = unit_.queued->created_ns;
    }
    if (outcome.starts) return starts(outcome);
    outcome.no = told_of_its_like(outcome.no);
    const bool unfinished = unit_.queued != nullptr && !unit_.queued->incomplete.empty();
    if (unfinished && outcome.no.reason == Reason::kPendingEvaluation) {
      outcome.no.reason = unit_.queued->incomplete_reason;  // its turn does not come as it is
    }
    if (outcome.no.reason == Reason::kNone) return undecided();
    if (outcome.no.reason == Reason::kNoNodes && nodes_hidden()) return without_nodes();
    if (sample == nullptr) return blame(outcome.no.reason, outcome.no.message, false);
    look_.builder = trials_.after();
    look_at_nodes(Draft(), look_);
    const Refined refined = refine(outcome.no, look_);
    std::string message = message_for(refined, outcome.no, look_);
    if (refined.reason == Reason::kUnsatisfiedAdmissionChecks) {
      const std::string checks = checks_not_ready(options_.objects, unit_);
      if (!checks.empty()) message = "it holds quota; not ready: " + checks;
    }
    blame(refined.reason, std::move(message), refined.never);
    add_also(refined);
    if (nested_) return;
    add_details(outcome.no);
    search();
    if (answer_.standing == Standing::kWaiting || answer_.standing == Standing::kFault) {
      answer_.start = start_of(situation(), answer_);
    } else {
      answer_.start.because = "not without a change";
    }
  }

  // A "no" for one workload holds for all of its queue that ask for the same, and they are not
  // looked at: what was said of the first is true of this one.
  Outcome told_of_its_like(const Outcome& no) const {
    if (unit_.queued == nullptr || no.reason != Reason::kPendingEvaluation) return no;
    for (const Outcome& other : trials_.decision().outcomes) {
      const bool told = other.queued && other.queue == no.queue &&
                        other.verdict != model::Verdict::kPlaced && other.reason != no.reason &&
                        other.reason != Reason::kNone;
      if (!told) continue;
      for (const model::WorkloadSpec& spec : trials_.inputs().queues.workloads) {
        if (spec.ns + '/' + spec.name != other.workload || !asks_the_same(spec)) continue;
        Outcome out = other;
        out.workload = no.workload;
        out.position = no.position;
        return out;
      }
    }
    return no;
  }

  bool asks_the_same(const model::WorkloadSpec& spec) const {
    const auto& mine = unit_.queued->pod_sets;
    return std::equal(mine.begin(), mine.end(), spec.pod_sets.begin(), spec.pod_sets.end(),
                      [](const model::PodSetSpec& a, const model::PodSetSpec& b) {
                        return a.count == b.count && a.requests == b.requests &&
                               goes_where(*a.pod, *b.pod);
                      });
  }

  // Who may not list nodes is not told that there are none.
  bool nodes_hidden() const {
    return std::any_of(options_.unseen.begin(), options_.unseen.end(), [](const std::string& what) {
      return what == "nodes" || what.starts_with("nodes ");
    });
  }

  void without_nodes() {
    const std::string told = told_by_scheduler(unit_);
    blame(Reason::kPendingEvaluation,
          "nodes cannot be seen, so where it could run is not known" +
              (told.empty() ? "" : "; its scheduler says: " + told),
          false);
    answer_.start.because = "nodes cannot be seen";
  }

  void starts(const TrialOutcome& outcome) {
    answer_.start = {.at_ns = options_.plan.now_ns, .because = "it fits now"};
    std::string message = "the next decision starts it";
    if (nodes_hidden()) {
      message = "its quota is free; nodes cannot be seen, so where it could run is not known";
      answer_.start = {.at_ns = std::nullopt, .because = "nodes cannot be seen"};
    }
    if (!outcome.node.empty()) message += " on " + outcome.node;
    if (outcome.victims > 0) {
      message += ", for " + show_count(outcome.victims, "pod") + " of lower priority";
    }
    if (unit_.kind == "CronJob" && unit_.running.empty()) {
      message = "its pods are made when its schedule says so, and would start then";
      answer_.start = {.at_ns = std::nullopt, .because = "that is for its schedule to say"};
    }
    blame(Reason::kPendingEvaluation, std::move(message), false);
    answer_.stage = Stage::kBind;
  }

  // The decision says nothing about it: it holds quota from before, or is on its way.
  void undecided() {
    const bool reserved =
        unit_.queued != nullptr && unit_.queued->admission && !unit_.queued->admitted;
    if (reserved) {
      const std::string checks = checks_not_ready(options_.objects, unit_);
      blame(Reason::kUnsatisfiedAdmissionChecks,
            checks.empty() ? "" : "it holds quota; not ready: " + checks, false);
      answer_.start.because = "that depends on whoever answers the check";
      return search();
    }
    blame(Reason::kPendingEvaluation,
          unit_.queued != nullptr && unit_.queued->admitted
              ? "it is admitted, and its pods are yet to be made or bound"
              : "it was not decided yet",
          false);
    answer_.stage = Stage::kBind;
  }

  // Of a gang, or of the pod sets of a queued workload, the first that fits no node, else the
  // first.
  void look_at_nodes(const Draft& draft, Look& out) {
    if (out.builder.state().nodes() == 0) return;
    std::vector<PodSpec> candidates;
    for (const PodSpec* pod : unit_.pending) {
      const std::string name = pod->ns + '/' + pod->name;
      if (!unit_.asked_pod.empty() && unit_.form == Unit::Form::kPods && name != unit_.asked_pod) {
        continue;
      }
      const auto changed = draft.pods.find(name);
      candidates.push_back(changed == draft.pods.end() ? *pod : changed->second);
    }
    if (unit_.queued != nullptr || candidates.empty()) {
      const std::size_t sets = unit_.queued == nullptr ? 1 : unit_.queued->pod_sets.size();
      candidates.clear();
      for (std::size_t i = 0; i < std::max<std::size_t>(1, sets); ++i) {
        candidates.push_back(queued_sample(trials_.inputs(), draft, unit_, i));
      }
    }
    for (const PodSpec& pod : candidates) {
      const std::string name = pod.ns + '/' + pod.name;
      if (!out.builder.find_pod(name)) out.builder.upsert_pod(pod);
      out.state = &out.builder.state();
      const model::PodEntry& entry = out.state->pod(*out.builder.find_pod(name));
      if (entry.slot >= 0 || entry.shape == out.shape) continue;
      NodePicture picture = picture_of(placer_, *out.state, entry.shape);
      if (out.picture && picture.with_room > 0) continue;
      out.picture = std::move(picture);
      out.shape = entry.shape;
      out.sample = pod;
      if (out.picture->with_room == 0) return;
    }
  }

  struct Refined {
    Reason reason = Reason::kNone;
    bool never = false;
    bool by_nodes = false;           // the picture's word
    std::vector<Constraint> others;  // that hold the same nodes
  };

  // The decision's reason, or a better one: nodes that could never take the pod are not to blame.
  static Refined refine(const Outcome& no, const Look& look) {
    Refined out{.reason = no.reason, .never = no.verdict == model::Verdict::kNever, .others = {}};
    const auto& picture = look.picture;
    if (!picture || !about_nodes(no.reason) || picture->binding == Constraint::kCount) return out;
    if (picture->with_room > 0 || (out.never && !picture->never)) return out;
    out.by_nodes = true;
    if (!picture->never) out.others = picture->also;
    const bool by_gpus = no.reason == Reason::kFragmented || no.reason == Reason::kInsufficientGpus;
    const bool whole = look.shape->demand->kind == model::GpuDemandSpec::Kind::kWhole;
    // Room on nodes that are too small for it is none.
    const bool elsewhere = picture->free_milli > picture->room_milli;
    if (!by_gpus || picture->binding != Constraint::kGpus ||
        (whole && (no.reason == Reason::kInsufficientGpus || elsewhere))) {
      out.reason = reason_of(*picture, picture->binding, *look.shape->demand);
    }
    out.never = picture->never;
    return out;
  }

  std::string message_for(const Refined& refined, const Outcome& no, const Look& look) const {
    const bool size =
        refined.reason == Reason::kNeverFits || refined.reason == Reason::kInsufficientResource;
    std::string absent = size ? absent_resource(trials_.inputs(), look.sample) : "";
    if (!absent.empty()) return absent;
    if (refined.reason == Reason::kTopologyPlacementFailed) {
      const std::string lacking = levels_lacking(trials_.inputs(), unit_);
      if (!lacking.empty()) return no.message + "; " + lacking;
    }
    if (refined.reason == Reason::kVolumeMissing && options_.objects != nullptr) {
      const std::string told =
          told_of_claim(*options_.objects, unit_.ns, look.sample.volume_missing);
      if (!told.empty()) return told;
    }
    if (refined.reason == Reason::kDeactivated) return no.message + why_deactivated();
    if (!refined.by_nodes) return no.message;
    if (refined.reason == Reason::kVolumeUnreachable && options_.objects != nullptr) {
      const auto full = full_nodes(*options_.objects, unit_.places);
      if (!full.empty())
        return "a volume cannot be attached where it could run: " + told_of(full.front());
    }
    return message_of(*look.picture, *look.state, look.sample, refined.reason,
                      refined.reason == no.reason ? no.message : "");
  }

  // Who took it out of its queue, in his words: "; evicted: exceeding the maximum execution time".
  std::string why_deactivated() const {
    const auto raw = options_.objects == nullptr || unit_.queued == nullptr
                         ? std::nullopt
                         : options_.objects->find("Workload", unit_.ns, unit_.queued->name);
    if (!raw) return "";
    for (const text::Value& each : at(raw->value, "status.conditions").items()) {
      const std::string said(text_at(each, "message"));
      const bool evicted =
          text_at(each, "type") == "Evicted" && text_at(each, "status") == "True" && !said.empty();
      if (evicted) return "; evicted: " + said;
    }
    return "";
  }

  // What would hold it next, once the causes found so far are mended, were it alone.
  void add_also(const Refined& first) {
    add_others(first, look_);
    Refined last = first;
    Draft draft;
    for (int step = 0; step < 4; ++step) {
      if (!relax(situation(), last.reason, draft)) break;
      trials_.focus(unit_);
      Look look;
      const TrialOutcome next = trials_.alone(draft, unit_, look.builder);
      if (next.starts || next.no.reason == Reason::kNone) break;
      look_at_nodes(draft, look);
      const Refined refined = refine(next.no, look);
      if (refined.reason == last.reason) break;
      add_cause(refined.reason, message_for(refined, next.no, look));
      add_others(refined, look);
      last = refined;
    }
    if (first.reason != Reason::kMisconfigured && checks_to_come(trials_.inputs(), unit_)) {
      const std::string checks = checks_not_ready(options_.objects, unit_);
      add_cause(Reason::kUnsatisfiedAdmissionChecks, checks.empty() ? "" : "not ready: " + checks);
    }
  }

  void add_others(const Refined& refined, const Look& look) {
    for (const Constraint c : refined.others) {
      add_cause(reason_of(*look.picture, c, *look.shape->demand), std::string(model::sentence(c)));
    }
  }

  void add_cause(Reason reason, std::string message) {
    const bool known = reason == answer_.reason ||
                       std::any_of(answer_.also.begin(), answer_.also.end(),
                                   [&](const Cause& cause) { return cause.reason == reason; });
    if (message.empty()) message = facts_of(reason).means;
    if (!known && reason != Reason::kNone) answer_.also.push_back({reason, std::move(message)});
  }

  // The same question of the objects with these changes: what is behind what the model lacks.
  void look_behind(const std::vector<ObjectChange>& changes) {
    if (nested_ || !options_.reread || changes.empty()) return;
    const ChangedObjects then(*options_.objects, changes);
    if (const auto held = ServerRules(then, unit_.places).held()) {
      return add_cause(held->reason, held->message);
    }
    if (auto read = read_partially(changes)) {
      if (!read->ok()) return;
      Trials trials(*(*read)->on, (*read)->draft);
      return tell_behind(trials, std::move((*read)->unit));
    }
    const Result<kinds::Inputs> inputs = options_.reread(changes);
    if (!inputs.ok()) return;
    Result<Unit> unit = find_unit(*inputs, nullptr, subject_);
    if (!unit.ok()) return;
    Trials trials(*inputs, options_.plan);
    tell_behind(trials, std::move(*unit));
  }

  std::optional<Result<PartialReading>> read_partially(
      const std::vector<ObjectChange>& changes) const {
    return options_.partial ? options_.partial(changes) : std::nullopt;
  }

  void tell_behind(Trials& trials, Unit unit) {
    if (unit.state != Unit::State::kPending) return;
    const Answer behind = Inquiry(options_, trials, std::move(unit), subject_, true).run();
    if (behind.reason == Reason::kNone || behind.reason == Reason::kPendingEvaluation) return;
    add_cause(behind.reason, behind.message);
    for (const Cause& cause : behind.also) add_cause(cause.reason, cause.message);
  }

  void add_details(const Outcome& no) {
    answer_.quota = quota_of(trials_.decision(), unit_, no);
    answer_.ahead = ahead_of(trials_, unit_, no);
    if (!look_.picture) return;
    show_nodes(*look_.picture, *look_.state, look_.sample, answer_);
    show_holders(*look_.picture, *look_.state, options_.objects, options_.most_holders, answer_);
    if (answer_.autoscaler) {
      sort_pools(*look_.picture, *look_.state, trials_.inputs().nodes, *answer_.autoscaler);
    }
  }

  Situation situation() {
    return {.options = by_model_ ? *by_model_ : options_,
            .trials = trials_,
            .unit = unit_,
            .sample = look_.sample,
            .picture = look_.picture ? &*look_.picture : nullptr,
            .state = look_.state,
            .reason = answer_.reason,
            .held = held_ ? &*held_ : nullptr,
            .autoscaler = answer_.autoscaler ? &*answer_.autoscaler : nullptr,
            .subject = subject_};
  }

  void search() {
    if (nested_) return;
    FoundFixes found = find_fixes(situation());
    answer_.fixes = std::move(found.fixes);
    answer_.in_vain = std::move(found.in_vain);
    answer_.refused = std::move(found.refused);
  }

  const WhyOptions& options_;
  Trials& trials_;
  Unit unit_;
  Subject subject_;
  bool nested_;
  std::optional<Held> held_;
  std::optional<WhyOptions> by_model_;  // where fixes are not to read objects anew
  schedule::Placer placer_;
  Answer answer_;
  Look look_;
};

}  // namespace

Answer inquire(const WhyOptions& options, Trials& trials, Unit unit, Subject subject,
               std::optional<Held> held) {
  return Inquiry(options, trials, std::move(unit), std::move(subject), false, std::move(held))
      .run();
}

}  // namespace berth::people
