#include "people/why/why.h"

#include <algorithm>

#include "people/why/inquiry.h"
#include "people/why/partial_reading.h"
#include "people/why/server_rules.h"
#include "people/why/trial.h"

namespace berth::people {

struct Examiner::State {
  State(const kinds::Inputs& inputs, WhyOptions given)
      : options(std::move(given)), trials(inputs, options.plan) {}
  WhyOptions options;
  Trials trials;
};

Examiner::Examiner(const kinds::Inputs& inputs, WhyOptions options)
    : state_(std::make_unique<State>(inputs, std::move(options))) {}
Examiner::~Examiner() = default;
Examiner::Examiner(Examiner&&) noexcept = default;

Result<Answer> Examiner::why(const Subject& subject) { return why(subject, state_->options); }

namespace {

// The objects as the rules of the API server leave them: each reading is of changes that the server
// takes, with what it fills in.
class Server {
 public:
  // trials: of the objects as they are. with_pods: the pods are yet to be made, and thought of.
  Server(const WhyOptions& options, const Trials& trials, Unit unit, Subject exact, bool with_pods)
      : options_(options),
        trials_(trials),
        unit_(std::move(unit)),
        exact_(std::move(exact)),
        with_pods_(with_pods),
        held_(ServerRules(*options_.objects, unit_.places, &readings_).held()),
        served_(served()) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const std::optional<Held>& held() const { return held_; }
  std::vector<ObjectChange> filled() const {
    return ServerRules(*options_.objects, unit_.places).filled_in(with_pods_);
  }

  // whom: found in what the trials are of.
  Answer ask(Trials& trials, Unit whom) {
    if (with_pods_) {
      whom.kind = unit_.kind;
      whom.places = unit_.places;
    }
    Answer out = inquire(served_, trials, std::move(whom), exact_, held_);
    if (spent_) out.in_vain.clear();
    return out;
  }

  std::optional<Result<PartialReading>> in_part(const std::vector<ObjectChange>& changes) const {
    const bool wanted = options_.model_first && options_.reread_part;
    if (!wanted || !concern_few(changes, trials_.inputs())) return std::nullopt;
    const kinds::Bound read = beside(unit_, changes, trials_.inputs());
    Result<kinds::Inputs> part = options_.reread_part(changes, read);
    if (!part.ok()) return Result<PartialReading>(std::move(part).error());
    auto out = compare(trials_, std::move(*part), read, changes, options_.objects, exact_);
    // A queue that nobody was in may not be known, nor what its quota is held by.
    if (out.ok() && out->unit.queued != nullptr && !is_known(*out->unit.queued)) {
      return std::nullopt;
    }
    return out;
  }

 private:
  WhyOptions served() {
    WhyOptions out = options_;
    out.reread = [this](const std::vector<ObjectChange>& changes) -> Result<kinds::Inputs> {
      BERTH_TRY(const auto all, taken(changes));
      return read(all);
    };
    out.reread_as_written = [this](const std::vector<ObjectChange>& changes) {
      return read(changes);
    };
    out.partial_as_written = [this](const std::vector<ObjectChange>& changes) {
      return in_part(changes);
    };
    out.partial =
        [this](const std::vector<ObjectChange>& changes) -> std::optional<Result<PartialReading>> {
      auto all = taken(changes);
      if (!all.ok()) return Result<PartialReading>(std::move(all).error());
      return in_part(*all);
    };
    return out;
  }

  bool is_known(const model::WorkloadSpec& spec) const {
    const auto& workloads = trials_.inputs().queues.workloads;
    return std::any_of(workloads.begin(), workloads.end(), [&](const model::WorkloadSpec& each) {
      return each.ns == spec.ns && each.name == spec.name;
    });
  }
  Result<kinds::Inputs> read(const std::vector<ObjectChange>& changes) {
    auto out = options_.reread(changes);
    spent_ = spent_ || (!out.ok() && out.error().code() == Code::kExhausted);
    return out;
  }
  Result<std::vector<ObjectChange>> taken(const std::vector<ObjectChange>& changes) const {
    const ChangedObjects now(*options_.objects, changes);
    const ServerRules rules(now, unit_.places, &readings_);
    if (const auto held = rules.held()) return invalid(held->message);
    return one_after_the_other(changes, rules.filled_in(with_pods_));
  }

  const WhyOptions& options_;
  const Trials& trials_;
  const Unit unit_;
  const Subject exact_;
  const bool with_pods_;
  mutable PodReadings readings_;
  const std::optional<Held> held_;
  const WhyOptions served_;
  bool spent_ = false;  // not all changes were read that were to be tried
};

// unit: found in what the trials are of; as_is: of the objects that changes are read against.
Answer ask_server(const WhyOptions& options, const Trials& as_is, Trials& trials, Unit unit,
                  const Subject& exact) {
  // The pods of what has made none are thought of; those of a Job of files the reader makes.
  const bool makes = unit.state == Unit::State::kUnmade || unit.state == Unit::State::kSuspended;
  Server server(options, as_is, unit, exact, makes && (unit.kind != "Job" || options.live));
  // Nothing would be stored.
  const bool refused = server.held() && server.held()->by == Held::By::kLimitRange;
  const std::vector<ObjectChange> filled = unit.state == Unit::State::kSuspended || refused
                                               ? std::vector<ObjectChange>()
                                               : server.filled();
  if (filled.empty()) return server.ask(trials, std::move(unit));
  if (auto read = server.in_part(filled); read && read->ok()) {
    Trials then(as_is, (*read)->draft);
    return server.ask(then, std::move((*read)->unit));
  }
  const Result<kinds::Inputs> inputs = options.reread(filled);
  Result<Unit> made =
      inputs.ok() ? find_unit(*inputs, options.objects, exact) : Result<Unit>(inputs.error());
  if (!made.ok()) return server.ask(trials, std::move(unit));
  Trials then(*inputs, options.plan);
  return server.ask(then, std::move(*made));
}

}  // namespace

Result<Answer> Examiner::why(const Subject& subject, WhyOptions options) {
  options.plan = state_->options.plan;
  BERTH_TRY(Unit unit, find_unit(state_->trials.inputs(), options.objects, subject));
  Subject exact = subject;
  exact.ns = unit.ns;
  if (options.objects == nullptr || !options.reread) {
    return inquire(options, state_->trials, std::move(unit), std::move(exact));
  }
  return ask_server(options, state_->trials, state_->trials, std::move(unit), exact);
}

Result<Answer> why_after(const PartialReading& read, const WhyOptions& options,
                         const Subject& subject) {
  BERTH_TRY(Unit unit, find_unit(*read.part, options.objects, subject));
  Trials trials(*read.on, read.draft);
  return ask_server(options, *read.on, trials, std::move(unit), subject);
}

bool starts_in(const kinds::Inputs& inputs, const PlanOptions& options, const Subject& subject) {
  Result<Unit> unit = find_unit(inputs, nullptr, subject);
  if (!unit.ok()) return false;
  if (unit->state != Unit::State::kPending) return unit->state == Unit::State::kRunning;
  const Trials trials(inputs, options);
  return outcome_of(trials.decision(), *unit, unit->pending_names()).starts;
}

}  // namespace berth::people
