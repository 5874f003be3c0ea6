#include "explain/why.h"

#include <fmt/format.h>

#include <algorithm>

#include "explain/cause.h"
#include "explain/details.h"
#include "explain/fixes.h"
#include "explain/trial.h"
#include "explain/words.h"

namespace berth::explain {

using model::Constraint;
using model::Outcome;
using model::PodSpec;
using model::Reason;

struct Examiner::State {
  State(const objects::Inputs& inputs, WhyOptions given)
      : options(std::move(given)), trials(inputs, options.plan) {}
  WhyOptions options;
  Trials trials;
};

namespace {

std::set<std::string> pending_names(const Unit& unit) {
  std::set<std::string> names;
  for (const PodSpec* pod : unit.pending) names.insert(pod->ns + '/' + pod->name);
  return names;
}

// Reasons that one constraint gives on nodes, and what the decision makes of them.
bool about_nodes(Reason reason) {
  const bool constraint = reason >= Reason::kNodeNotReady && reason <= Reason::kNumaMisaligned;
  return constraint || reason == Reason::kFragmented || reason == Reason::kNeverFits;
}

class Inquiry {
 public:
  Inquiry(const WhyOptions& options, Trials& trials, Unit unit)
      : options_(options), trials_(trials), unit_(std::move(unit)), placer_(options.plan.policy) {
    answer_.kind = unit_.kind;
    answer_.ns = unit_.ns;
    answer_.name = unit_.name;
    answer_.evaluated_ns = options.plan.now_ns;
    answer_.evidence = {.objects = unit_.objects,
                        .digest = options.digest,
                        .replay = options.replay,
                        .partial = options.unseen};
    answer_.start.because = "nothing that it waits for says how long it takes";
  }

  Answer run() {
    switch (unit_.state) {
      case Unit::State::kRunning:
        running();
        break;
      case Unit::State::kEnded:
        answer_.standing = Standing::kRunning;
        answer_.line = unit_.full() + " has ended";
        answer_.start.because = "it has ended";
        break;
      case Unit::State::kSuspended:
        blame(Reason::kSuspended, "spec.suspend is true, so it has no pods", false);
        search({});
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
    return std::move(answer_);
  }

 private:
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
      if (!trials_.before().inventory().slot(pod->node_name)) {
        blame(Reason::kNodeNameNotFound, fmt::format("its node {} does not exist", pod->node_name),
              false);
        return search({});
      }
    }
    answer_.standing = Standing::kRunning;
    answer_.where = where_it_runs(trials_, unit_);
    const PodSpec& first = *unit_.running.front();
    answer_.line = unit_.running.size() == 1
                       ? fmt::format("{} runs on {}", unit_.full(), first.node_name)
                       : fmt::format("{} runs: {} on nodes", unit_.full(),
                                     show_count(static_cast<int>(unit_.running.size()), "pod"));
    if (first.started_ns > 0) answer_.since_ns = first.started_ns;
    answer_.need = need_of(trials_.inputs(), unit_);
  }

  void invalid_object() {
    const objects::Note& first = *unit_.complaints.front();
    blame(Reason::kMisconfigured, (first.path.empty() ? "" : first.path + ": ") + first.message,
          false);
    answer_.stage = Stage::kGate;
    for (std::size_t i = 1; i < unit_.complaints.size(); ++i) {
      const objects::Note& note = *unit_.complaints[i];
      answer_.also.push_back(
          {Reason::kMisconfigured, (note.path.empty() ? "" : note.path + ": ") + note.message});
    }
    answer_.start.because = "it must be corrected first";
    search({});
  }

  // What the kubelet says of a pod that is bound.
  void refused() {
    const Refusal refusal = refusal_of(unit_);
    blame(refusal.started ? Reason::kContainersNotStarted : Reason::kNodeRefused, refusal.message,
          false);
    answer_.start.because = "that depends on its node";
  }

  void pending() {
    const TrialOutcome outcome = outcome_of(trials_.decision(), unit_, pending_names(unit_));
    answer_.need = need_of(trials_.inputs(), unit_);
    const PodSpec* sample = unit_.sample();
    if (sample != nullptr && sample->created_ns > 0) answer_.since_ns = sample->created_ns;
    if (unit_.queued != nullptr && unit_.queued->created_ns > 0) {
      answer_.since_ns = unit_.queued->created_ns;
    }
    if (outcome.starts) return starts(outcome);
    if (sample == nullptr) return blame(outcome.no.reason, outcome.no.message, false);
    look_at_nodes();
    std::vector<Constraint> others;
    const auto [reason, never] = refine(outcome.no, &others);
    std::string message = outcome.no.message;
    if (picture_ && about_nodes(reason) && reason != Reason::kNeverFits &&
        picture_->binding != Constraint::kCount) {
      message = message_of(*picture_, *state_, *shown_, reason, message);
    }
    if (reason == Reason::kNeverFits && outcome.no.reason != reason) message.clear();
    blame(reason, std::move(message), never);
    add_also(outcome.no, others);
    add_details(outcome.no);
    search(answer_.message);
    if (answer_.standing == Standing::kWaiting || answer_.standing == Standing::kFault) {
      answer_.start = start_of(situation(""), answer_);
    } else {
      answer_.start.because = "not without a change";
    }
  }

  void starts(const TrialOutcome& outcome) {
    blame(Reason::kPendingEvaluation,
          outcome.node.empty() ? "the next decision starts it"
                               : "the next decision starts it on " + outcome.node,
          false);
    answer_.stage = Stage::kBind;
    answer_.start = {.at_ns = options_.plan.now_ns, .because = "it fits now"};
  }

  // The pod whose nodes are shown: of a gang the first that fits none.
  void look_at_nodes() {
    builder_ = std::make_unique<model::SnapshotBuilder>(trials_.after());
    if (builder_->state().nodes() == 0) return;
    std::vector<const PodSpec*> candidates = unit_.pending;
    PodSpec probe;
    if (unit_.queued != nullptr || candidates.empty()) {
      probe = queued_sample(trials_.inputs(), unit_);
      candidates = {&probe};
    }
    for (const PodSpec* pod : candidates) {
      const std::string name = pod->ns + '/' + pod->name;
      if (!unit_.asked_pod.empty() && unit_.form == Unit::Form::kPods && name != unit_.asked_pod) {
        continue;
      }
      if (!builder_->find_pod(name)) builder_->upsert_pod(*pod);
      state_ = &builder_->state();
      const model::PodEntry& entry = state_->pod(*builder_->find_pod(name));
      if (entry.slot >= 0) continue;  // placed by the decision
      if (shown_ != nullptr && entry.shape == shape_) continue;
      NodePicture picture = picture_of(placer_, *state_, entry.shape);
      if (shown_ != nullptr && picture.with_room > 0) continue;
      picture_ = std::move(picture);
      shape_ = entry.shape;
      sample_ = *pod;
      shown_ = &sample_;
      if (picture_->with_room == 0) return;
    }
  }

  // The decision's reason, or a better one: nodes that could never take the pod are not to blame.
  std::pair<Reason, bool> refine(const Outcome& no, std::vector<Constraint>* others) const {
    const bool never = no.verdict == model::Verdict::kNever;
    if (!picture_ || !about_nodes(no.reason) || picture_->binding == Constraint::kCount) {
      return {no.reason, never};
    }
    if (picture_->with_room > 0 || (never && !picture_->never)) return {no.reason, never};
    if (others != nullptr) *others = picture_->also;
    const bool by_gpus = no.reason == Reason::kFragmented || no.reason == Reason::kInsufficientGpus;
    if (by_gpus && picture_->binding == Constraint::kGpus) return {no.reason, never};
    return {reason_of(*picture_, picture_->binding, *shape_->demand), picture_->never};
  }

  void add_also(const Outcome& no, const std::vector<Constraint>& others) {
    for (const Constraint c : others) {
      const Reason reason = reason_of(*picture_, c, *shape_->demand);
      add_cause(reason, std::string(model::sentence(c)));
    }
    Outcome last = no;
    Draft draft;
    for (int step = 0; step < 3; ++step) {  // what would hold it next
      if (!mend(situation(""), last.reason, draft)) return;
      const TrialOutcome next = trials_.run(draft, unit_);
      if (next.starts || next.no.reason == Reason::kNone) return;
      std::vector<Constraint> more;
      const Reason reason = refine(next.no, &more).first;
      if (reason == answer_.reason || next.no.reason == last.reason) return;
      add_cause(reason, next.no.message);
      for (const Constraint c : more) {
        add_cause(reason_of(*picture_, c, *shape_->demand), std::string(model::sentence(c)));
      }
      last = next.no;
    }
  }

  void add_cause(Reason reason, std::string message) {
    const bool known = reason == answer_.reason ||
                       std::any_of(answer_.also.begin(), answer_.also.end(),
                                   [&](const Cause& cause) { return cause.reason == reason; });
    if (message.empty()) message = facts_of(reason).means;
    if (!known && reason != Reason::kNone) answer_.also.push_back({reason, std::move(message)});
  }

  void add_details(const Outcome& no) {
    answer_.quota = quota_of(trials_.decision(), trials_.inputs(), unit_, no);
    answer_.ahead = ahead_of(trials_, unit_, no);
    if (!picture_) return;
    show_nodes(*picture_, *state_, *shown_, answer_);
    show_holders(*picture_, *state_, options_.objects, answer_);
  }

  Situation situation(std::string message) {
    return {.options = options_,
            .trials = trials_,
            .unit = unit_,
            .sample = shown_ != nullptr ? *shown_ : sample_or_empty(),
            .picture = picture_ ? &*picture_ : nullptr,
            .state = state_,
            .reason = answer_.reason,
            .message = std::move(message)};
  }

  const PodSpec& sample_or_empty() {
    if (const PodSpec* pod = unit_.sample()) sample_ = *pod;
    return sample_;
  }

  void search(const std::string& message) {
    const Situation s = situation(message);
    answer_.fixes = find_fixes(s, answer_.in_vain);
  }

  const WhyOptions& options_;
  Trials& trials_;
  Unit unit_;
  schedule::Placer placer_;
  Answer answer_;
  std::unique_ptr<model::SnapshotBuilder> builder_;
  const model::ClusterState* state_ = nullptr;
  std::optional<NodePicture> picture_;
  model::ShapeRef shape_ = nullptr;
  PodSpec sample_;
  const PodSpec* shown_ = nullptr;
};

}  // namespace

Examiner::Examiner(const objects::Inputs& inputs, WhyOptions options)
    : state_(std::make_unique<State>(inputs, std::move(options))) {}
Examiner::~Examiner() = default;
Examiner::Examiner(Examiner&&) noexcept = default;

Result<Answer> Examiner::why(const Subject& subject) {
  BERTH_TRY(Unit unit, find_unit(state_->trials.inputs(), state_->options.objects, subject));
  return Inquiry(state_->options, state_->trials, std::move(unit)).run();
}

bool starts_in(const objects::Inputs& inputs, const PlanOptions& options, const Subject& subject,
               const ObjectSource* objects) {
  Result<Unit> unit = find_unit(inputs, objects, subject);
  if (!unit.ok()) return false;
  if (unit->state != Unit::State::kPending) return unit->state == Unit::State::kRunning;
  const Trials trials(inputs, options);
  return outcome_of(trials.decision(), *unit, pending_names(*unit)).starts;
}

}  // namespace berth::explain
