#include "control/replay.h"

#include <algorithm>
#include <set>
#include <utility>

#include "control/decision_line.h"
#include "kinds/pod_writes.h"
#include "kinds/readers.h"
#include "text/json.h"
#include "text/path.h"

namespace berth::control {

using text::Value;

namespace {

std::set<std::string> set_of(const Value& v) {
  std::set<std::string> out;
  if (const Value* list = v.find("names")) {
    for (const Value& name : list->items()) out.emplace(name.string());
  }
  return out;
}

// "0,1" as kinds::gpus_text() writes it.
std::vector<int> gpus_of(const Value& v) {
  std::vector<int> out;
  const std::string text(text_at(v, "gpus"));
  for (const std::string_view part : kinds::split(text, ",")) {
    std::int64_t number = 0;
    if (kinds::parse_int(part, number)) out.push_back(static_cast<int>(number));
  }
  return out;
}

const model::WorkloadSpec* spec_in(const kinds::Inputs& inputs, const std::string& workload) {
  for (const model::WorkloadSpec& spec : inputs.queues.workloads) {
    if (spec.ns + '/' + spec.name == workload) return &spec;
  }
  return nullptr;
}

}  // namespace

std::uint64_t line_sum(std::uint64_t before, std::string_view line) {
  for (const char c : line) before = (before ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return (before ^ 0x0a) * 0x100000001b3u;
}

Result<std::optional<ReplayDifference>> Replay::line(std::string_view text) {
  ++lines_;
  const auto damaged = [this](const std::string& what) {
    return invalid("line " + std::to_string(lines_) + ": " + what);
  };
  if (text.size() < 18 || text[16] != ' ') return damaged("want a sum and a line of JSON");
  const std::string_view json = text.substr(17);
  const std::uint64_t sum = line_sum(sum_, json);
  if (hex(sum) != text.substr(0, 16)) {
    return damaged("its sum is " + kinds::quoted(text.substr(0, 16)) + ", want " + hex(sum) +
                   ": the log was changed here or before");
  }
  sum_ = sum;
  auto document = text::parse_json(json);
  if (!document.ok()) return damaged(document.error().to_string());
  const Value& v = document->root();
  const std::string op(text_at(v, "op"));
  if (op == "begin") {
    const Status begun = begin(v);
    if (!begun.ok()) return damaged(begun.error().to_string());
    return std::optional<ReplayDifference>();
  }
  if (!world_) return damaged("found " + kinds::quoted(op) + ", want begin first");
  auto out = apply(op, v);
  if (!out.ok()) return damaged(out.error().to_string());
  return out;
}

Status Replay::begin(const Value& v) {
  if (int_at(v, "format") != kWorldLogFormat) {
    return invalid("format " + std::to_string(int_at(v, "format")) + ", want " +
                   std::to_string(kWorldLogFormat));
  }
  std::vector<std::string> names;
  if (const Value* list = v.find("schedulerNames")) {
    for (const Value& name : list->items()) names.emplace_back(name.string());
  }
  BERTH_TRY(model::PolicyFlags flags, read_flags(v));
  world_ = std::make_unique<World>(std::move(names), 1, std::move(flags));
  queues_read_ = false;
  return {};
}

std::optional<ReplayDifference> Replay::compare(const Value& v, const char* what,
                                                const model::Decision& made) {
  ++decisions_;
  const std::string objects = hex(world_->objects().digest());
  if (objects != text_at(v, "objects")) {
    return ReplayDifference{cycle_, "objects", std::string(text_at(v, "objects")), objects, made};
  }
  const std::string digest = hex(decision_digest(made));
  if (digest == text_at(v, "digest")) return std::nullopt;
  return ReplayDifference{cycle_, what, std::string(text_at(v, "digest")), digest, made};
}

Result<std::optional<ReplayDifference>> Replay::apply(std::string_view op, const Value& v) {
  std::optional<ReplayDifference> out;
  bool known = true;
  if (op == "put") {
    const Value* object = v.find("o");
    if (object == nullptr) return invalid("want the object o");
    world_->put(std::string(text_at(v, "v")), std::string(text_at(v, "k")), *object);
  } else if (op == "remove") {
    world_->remove(std::string(text_at(v, "v")), std::string(text_at(v, "k")),
                   std::string(text_at(v, "ns")), std::string(text_at(v, "name")));
  } else if (op == "cycle") {
    ++cycles_;
    cycle_ = static_cast<std::uint64_t>(int_at(v, "n"));
    last_ = {};
  } else if (op == "refresh") {
    std::vector<kinds::Note> refused, unread;
    world_->refresh(refused, unread);
  } else if (op == "inputs") {
    world_->read_queues();
    queues_read_ = true;
  } else if (op == "decide") {
    now_ns_ = int_at(v, "now");
    last_ = world_->decide(now_ns_);
    out = compare(v, "pods", last_);
  } else if (op == "queues") {
    if (!queues_read_) return invalid("found queues, want inputs before it");
    queues_ = *world_->decide_queues(int_at(v, "now"), true);
    out = compare(v, "queues", queues_);
    const auto join = [](auto& to, const auto& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    waits_ = queues_.outcomes;
    join(last_.placements, queues_.placements);
    join(last_.admissions, queues_.admissions);
    join(last_.evictions, queues_.evictions);
  } else if (op == "wrote") {
    out = wrote(v);
  } else if (!believe(op, v)) {
    BERTH_CHECK(promise(op, v, known));
  }
  if (!known) return invalid("found " + kinds::quoted(op) + ", want a call that is known");
  return out;
}

// The decisions of a cycle as one, with what waits in queues since their last decision.
std::optional<ReplayDifference> Replay::wrote(const Value& v) {
  if (!world_->objects().has_queues()) waits_.clear();
  last_.outcomes.insert(last_.outcomes.end(), waits_.begin(), waits_.end());
  const DecisionLine line{.cycle = cycle_, .now_ns = now_ns_, .inputs = world_->objects().digest()};
  id_ = decision_id(line, last_);
  written_ = decision_line(line, last_);
  if (id_ == text_at(v, "id")) return std::nullopt;
  return ReplayDifference{cycle_, "cycle", std::string(text_at(v, "id")), id_, last_};
}

// Calls about pods and nodes.
bool Replay::believe(std::string_view op, const Value& v) {
  const std::string pod(text_at(v, "pod"));
  if (op == "assume") {
    world_->assume(pod, {.uid = std::string(text_at(v, "uid")),
                         .node = std::string(text_at(v, "node")),
                         .gang = std::string(text_at(v, "gang")),
                         .gpus = gpus_of(v),
                         .charged = std::string(text_at(v, "charged"))});
  } else if (op == "drop") {
    world_->drop(pod);
  } else if (op == "confirm") {
    world_->confirm(pod);
  } else if (op == "leave") {
    world_->leave(pod, std::string(text_at(v, "uid")), std::string(text_at(v, "node")), 0);
  } else if (op == "stays") {
    world_->stays(pod);
  } else if (op == "keep") {
    world_->keep(pod);
  } else if (op == "let-go") {
    world_->let_go(pod);
  } else if (op == "protect") {
    world_->protect(std::string(text_at(v, "namespace")));
  } else if (op == "hold") {
    world_->hold(std::string(text_at(v, "name")), int_at(v, "until"));
  } else if (op == "end-holds") {
    world_->end_holds(int_at(v, "now"));
  } else if (op == "avoid") {
    world_->avoid(set_of(v));
  } else if (op == "room-makers") {
    world_->set_room_makers(set_of(v));
  } else if (op == "fail") {
    world_->fail_one(pod, {std::string(text_at(v, "reason")), std::string(text_at(v, "why"))});
  } else if (op == "forget") {
    world_->forget_everything();
  } else {
    return false;
  }
  return true;
}

// Calls about workloads, which speak of the last decision of queues.
Status Replay::promise(std::string_view op, const Value& v, bool& known) {
  const std::string workload(text_at(v, "workload"));
  if (op == "reserve") {
    const model::WorkloadSpec* spec = queues_read_ ? world_->workload(workload) : nullptr;
    if (spec == nullptr) return invalid("workload " + kinds::quoted(workload) + " is not known");
    std::vector<const model::Placement*> placements;
    for (const model::Placement& p : queues_.placements) {
      if (p.gang == workload) placements.push_back(&p);
    }
    world_->reserve(*spec, placements, 0);
  } else if (op == "places") {
    return restore(v);
  } else if (op == "end-reservation") {
    world_->end_reservation(workload);
  } else if (op == "take") {
    world_->take_place(workload, static_cast<std::size_t>(int_at(v, "place")),
                       std::string(text_at(v, "pod")));
  } else if (op == "admitting") {
    const auto it = std::find_if(queues_.admissions.begin(), queues_.admissions.end(),
                                 [&](const model::Admission& a) { return a.workload == workload; });
    if (it == queues_.admissions.end()) {
      return invalid("workload " + kinds::quoted(workload) + " was not admitted");
    }
    world_->admitting(workload, *it);
  } else if (op == "admitted") {
    world_->admitted(workload);
  } else {
    known = false;
  }
  return {};
}

Status Replay::restore(const Value& v) {
  const std::string workload(text_at(v, "workload"));
  const kinds::Inputs inputs = world_->objects().inputs();
  const model::WorkloadSpec* spec = spec_in(inputs, workload);
  if (spec == nullptr) return invalid("workload " + kinds::quoted(workload) + " is not known");
  std::vector<KnownPlace> places;
  if (const Value* list = v.find("places")) {
    for (const Value& place : list->items()) {
      places.push_back({std::string(text_at(place, "set")), std::string(text_at(place, "pod")),
                        std::string(text_at(place, "node")), gpus_of(place),
                        std::string(text_at(place, "taken"))});
    }
  }
  world_->restore(*spec, places, 0);
  return {};
}

}  // namespace berth::control
