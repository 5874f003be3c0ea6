#include "embedded/nodes/pod_record.h"

#include <algorithm>

#include "embedded/workloads/read.h"
#include "kinds/pod.h"
#include "text/editor.h"
#include "text/json_writer.h"
#include "text/path.h"
#include "text/quantity.h"

namespace berth::sim {

namespace {

using text::JsonWriter;
using text::Value;

constexpr std::int64_t kMilli = 1'000'000;
constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kLongestRun = std::int64_t{10} * 365 * 24 * 3600 * kSecondNs;

std::string_view sim_annotation(const Value& pod, std::string_view name) {
  const Value* all = find(pod, "metadata.annotations");
  const Value* found = all == nullptr ? nullptr : all->find("sim.berth.dev/" + std::string(name));
  return found == nullptr ? std::string_view{} : found->string();
}

// "2.5" seconds.
void read_seconds(const Value& pod, std::string_view name, std::int64_t& out,
                  std::vector<std::string>& wrong) {
  const std::string_view text = sim_annotation(pod, name);
  if (text.empty()) return;
  const auto quantity = text::parse_quantity(text);
  if (!quantity.ok() || quantity->is_negative() || quantity->milli_value() > kLongestRun / kMilli) {
    wrong.emplace_back(name);
    return;
  }
  out = quantity->milli_value() * kMilli;
}

void read_codes(const Value& pod, std::vector<int>& out, std::vector<std::string>& wrong) {
  const std::string_view text = sim_annotation(pod, "exit-code");
  if (text.empty()) return;
  std::vector<int> codes;
  for (const std::string_view part : kinds::split(text.substr(0, 1000), ",")) {
    std::int64_t code = 0;
    if (!kinds::parse_int(kinds::trim(part), code) || code > 255) {
      wrong.emplace_back("exit-code");
      return;
    }
    codes.push_back(static_cast<int>(code));
  }
  out = std::move(codes);
}

void read_containers(const Value& pod, std::vector<PodContainer>& out) {
  for (const std::string_view list : {"initContainers", "containers"}) {
    const Value* items = at(pod, "spec").find(list);
    if (items == nullptr) continue;
    for (const Value& c : items->items()) {
      PodContainer container;
      container.name = text_at(c, "name");
      container.image = text_at(c, "image");
      container.init = list == "initContainers";
      container.sidecar = container.init && text_at(c, "restartPolicy") == "Always";
      if (const Value* requests = find(c, "resources.requests")) {
        container.requests = text::to_json(*requests);
      }
      if (const Value* limits = find(c, "resources.limits")) {
        container.limits = text::to_json(*limits);
      }
      out.push_back(std::move(container));
    }
  }
}

struct ConditionWords {
  std::string_view type;
  bool status = true;
  std::int64_t since = 0;
  std::string_view reason = {};
};

// again: an earlier status is there. A patch keeps what it does not name, so an old reason must be
// taken away.
void put_condition(JsonWriter& out, const ConditionWords& c, bool again) {
  out.object([&] {
    out.field("type", c.type);
    out.field("status", c.status ? "True" : "False");
    out.field("lastTransitionTime", seconds_text(c.since));
    if (!c.reason.empty()) {
      out.field("reason", c.reason);
    } else if (again) {
      out.key("reason");
      out.null();
    }
  });
}

void put_resize(JsonWriter& out, const PodResize& resize) {
  out.object([&] {
    out.field("type", "PodResizePending");
    if (resize.reason.empty()) return out.field("$patch", "delete");
    out.field("status", "True");
    out.field("lastTransitionTime", seconds_text(resize.since));
    out.field("observedGeneration", resize.generation);
    out.field("reason", resize.reason);
    out.field("message", resize.message);
  });
}

// What a resized container has: set aside for it, and given.
void put_given(JsonWriter& out, const PodContainer& c) {
  const auto put = [&](std::string_view name, const std::string& json) {
    if (json.empty()) return;
    out.key(name);
    out.raw(json);
  };
  put("allocatedResources", c.requests);
  out.object("resources", [&] {
    put("limits", c.limits);
    put("requests", c.requests);
  });
}

void put_conditions(JsonWriter& out, const PodRecord& pod) {
  const bool up = pod.stage == PodStage::kRunning || pod.stage == PodStage::kBackoff ||
                  pod.stage == PodStage::kStopping;
  const bool ended = pod.stage == PodStage::kEnded;
  const bool completed = ended && pod.exit_code == 0;
  const bool ready = pod.ready && up;
  const std::int64_t ready_since = ready ? pod.ready_at : ended ? pod.finished_at : pod.ready_at;
  const std::string_view why = ready ? "" : completed ? "PodCompleted" : "ContainersNotReady";
  out.array("conditions", [&] {
    const bool again = pod.told_running;
    if (!pod.facts.has_scheduled_condition) {
      put_condition(out, {"PodScheduled", true, pod.admitted_at}, again);
    }
    put_condition(out, {"PodReadyToStartContainers", up, up ? pod.started_at : pod.finished_at},
                  again);
    put_condition(out, {"Initialized", true, pod.admitted_at, completed ? "PodCompleted" : ""},
                  again);
    put_condition(out, {"ContainersReady", ready, ready_since, why}, again);
    put_condition(out, {"Ready", ready, ready_since, why}, again);
    if (pod.resize.asked) put_resize(out, pod.resize);
  });
}

void put_terminated(JsonWriter& out, const PodRecord& pod, int code) {
  out.object("terminated", [&] {
    out.field("exitCode", code);
    out.field("reason", code == 0 ? "Completed" : "Error");
    out.field("startedAt", seconds_text(pod.started_at));
    out.field("finishedAt", seconds_text(pod.finished_at == 0 ? pod.started_at : pod.finished_at));
    out.field("containerID", "sim://" + pod.uid);
  });
}

void put_container_state(JsonWriter& out, const PodRecord& pod, const PodContainer& c) {
  out.object("state", [&] {
    if (c.init && !c.sidecar) {
      put_terminated(out, pod, 0);
    } else if (pod.stage == PodStage::kBackoff && !c.sidecar) {
      out.object("waiting", [&] {
        out.field("reason", "CrashLoopBackOff");
        out.field("message", "back-off restarting failed container " + c.name + " in pod " +
                                 pod.key.name + "_" + pod.key.ns + "(" + pod.uid + ")");
      });
    } else if (pod.stage == PodStage::kEnded) {
      put_terminated(out, pod, c.sidecar ? 0 : pod.exit_code);
    } else {
      out.object("running", [&] { out.field("startedAt", seconds_text(pod.started_at)); });
    }
  });
}

void put_container(JsonWriter& out, const PodRecord& pod, const PodContainer& c) {
  const bool finished_init = c.init && !c.sidecar;
  const bool runs = pod.stage == PodStage::kRunning || pod.stage == PodStage::kStopping ||
                    (c.sidecar && pod.stage == PodStage::kBackoff);
  out.object([&] {
    out.field("name", c.name);
    put_container_state(out, pod, c);
    out.object("lastState", [&] {
      const bool ended_before = !finished_init && !c.sidecar && pod.restarts > 0 &&
                                pod.stage != PodStage::kEnded && pod.finished_at != 0;
      if (ended_before) put_terminated(out, pod, pod.exit_code);
    });
    out.field("ready", finished_init || (runs && pod.ready));
    out.field("started", runs);
    out.field("restartCount", finished_init || c.sidecar ? 0 : pod.restarts);
    out.field("image", c.image);
    out.field("imageID", "sim://" + c.image);
    out.field("containerID", "sim://" + pod.uid);
    if (pod.resize.asked) put_given(out, c);
  });
}

void put_containers(JsonWriter& out, const PodRecord& pod, bool init) {
  const bool any = std::any_of(pod.facts.containers.begin(), pod.facts.containers.end(),
                               [init](const PodContainer& c) { return c.init == init; });
  if (!any) return;
  out.array(init ? "initContainerStatuses" : "containerStatuses", [&] {
    for (const PodContainer& c : pod.facts.containers) {
      if (c.init == init) put_container(out, pod, c);
    }
  });
}

void put_ips(JsonWriter& out, std::string_view one, std::string_view many, const std::string& ip) {
  if (ip.empty()) return;
  out.field(one, ip);
  out.array(many, [&] { out.object([&] { out.field("ip", ip); }); });
}

std::string_view phase_of(const PodRecord& pod) {
  if (pod.stage != PodStage::kEnded) return "Running";
  return pod.exit_code == 0 && pod.reason.empty() ? "Succeeded" : "Failed";
}

// A resize that its node has not granted counts as one that it never will: what is set aside alone.
Value as_held(const Value& pod, text::Editor& edit) {
  const Value* conditions = find(pod, "status.conditions");
  if (conditions == nullptr || find_type(*conditions, "PodResizePending") == nullptr) return pod;
  const Value refused[] = {edit.object({{"type", edit.string("PodResizePending")},
                                        {"status", edit.string("True")},
                                        {"reason", edit.string("Infeasible")}})};
  return edit.with_at(pod, "status.conditions", edit.array(refused));
}

// What a pod that was resized has is in its status; what it asks for is looked at again.
void restore_resize(const Value& pod, PodRecord& out) {
  for (const std::string_view list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Value& now : at(pod, "status")[list].items()) {
      const Value* allocated = now.find("allocatedResources");
      if (allocated == nullptr) continue;
      const auto has_name = [&](const PodContainer& c) { return c.name == text_at(now, "name"); };
      const auto it =
          std::find_if(out.facts.containers.begin(), out.facts.containers.end(), has_name);
      if (it == out.facts.containers.end()) continue;
      it->requests = text::to_json(*allocated);
      const Value* limits = find(now, "resources.limits");
      it->limits = limits == nullptr ? "" : text::to_json(*limits);
      out.resize.asked = true;
    }
  }
}

}  // namespace

int exit_code_of_run(const PodFacts& facts, int run) {
  if (facts.exit_codes.empty()) return 0;
  const auto at = std::min(static_cast<std::size_t>(std::max(run, 0)), facts.exit_codes.size() - 1);
  return facts.exit_codes[at];
}

PodFacts read_pod_facts(const Value& pod, std::int64_t default_run_ns,
                        std::vector<std::string>& wrong) {
  PodFacts facts;
  kinds::PodObject object;
  text::Decoder d;
  text::Editor edit;
  kinds::decode(as_held(pod, edit), object, d);  // what was taken is run as far as it can be read
  facts.needs = needs_of(object.spec);
  facts.restarts_always = object.restart_policy == "Always";
  facts.restarts_on_failure = object.restart_policy == "OnFailure";
  read_containers(pod, facts.containers);
  facts.run_ns = default_run_ns;
  read_seconds(pod, "run-seconds", facts.run_ns, wrong);
  read_seconds(pod, "ready-seconds", facts.ready_ns, wrong);
  read_seconds(pod, "stop-seconds", facts.stop_ns, wrong);
  read_seconds(pod, "start-seconds", facts.extra_start_ns, wrong);
  read_codes(pod, facts.exit_codes, wrong);
  if (const std::string_view text = sim_annotation(pod, "gpu-utilization"); !text.empty()) {
    std::int64_t percent = 0;
    if (kinds::parse_int(text, percent) && percent <= 100) {
      facts.utilization = static_cast<int>(percent);
    } else {
      wrong.emplace_back("gpu-utilization");
    }
  }
  const std::int64_t deadline = int_at(pod, "spec.activeDeadlineSeconds");
  if (deadline > 0 && deadline < kLongestRun / kSecondNs) facts.deadline_ns = deadline * kSecondNs;
  const Value* conditions = find(pod, "status.conditions");
  facts.has_scheduled_condition =
      conditions != nullptr && find_type(*conditions, "PodScheduled") != nullptr;
  return facts;
}

void read_wanted(const Value& pod, Needs& needs, std::vector<PodContainer>& containers) {
  text::Editor edit;
  const Value spec_alone = edit.without(pod, "status");
  kinds::PodObject object;
  text::Decoder d;
  kinds::decode(spec_alone, object, d);
  needs = needs_of(object.spec);
  read_containers(pod, containers);
}

void restore_pod(const Value& pod, std::int64_t wall_now, std::int64_t ticks_now, PodRecord& out) {
  out.admitted_at = time_at(pod, "status.startTime");
  if (out.admitted_at == 0) out.admitted_at = wall_now;
  out.started_at = out.admitted_at;
  out.told_running = true;
  bool waiting = false;
  restore_resize(pod, out);
  const Value& statuses = at(pod, "status.containerStatuses");
  for (const Value& c : statuses.items()) {
    out.restarts = std::max(out.restarts, static_cast<int>(int_at(c, "restartCount")));
    if (const std::int64_t at = time_at(c, "state.running.startedAt"); at != 0) {
      out.started_at = at;
    }
    waiting |= c.find("state") != nullptr && at(c, "state.waiting").is_object();
  }
  const Value* ready = find_type(at(pod, "status.conditions"), "Ready");
  out.ready = ready != nullptr && text_at(*ready, "status") == "True";
  out.ready_at = ready == nullptr ? out.started_at : time_at(*ready, "lastTransitionTime");
  const auto due = [&](std::int64_t from, std::int64_t span) {
    return ticks_now + std::max<std::int64_t>(1, span - (wall_now - from));
  };
  if (out.facts.deadline_ns > 0) out.deadline_due = due(out.admitted_at, out.facts.deadline_ns);
  if (waiting) {
    out.stage = PodStage::kBackoff;
    out.start_due = ticks_now + 10 * kSecondNs;
    return;
  }
  out.stage = PodStage::kRunning;
  if (out.facts.run_ns > 0) out.run_due = due(out.started_at, out.facts.run_ns);
  if (!out.ready) out.ready_due = due(out.started_at, out.facts.ready_ns);
}

std::string pod_status_patch(const PodRecord& pod, const std::string& host_ip,
                             const std::string& pod_ip) {
  const bool ran = pod.started_at != 0;
  JsonWriter out;
  out.object([&] {
    out.object("metadata", [&] { out.field("uid", pod.uid); });
    out.object("status", [&] {
      out.field("phase", phase_of(pod));
      if (!pod.reason.empty()) out.field("reason", pod.reason);
      if (!pod.message.empty()) out.field("message", pod.message);
      out.field("startTime", seconds_text(pod.admitted_at));
      put_ips(out, "hostIP", "hostIPs", host_ip);
      if (ran) {
        put_ips(out, "podIP", "podIPs", pod_ip);
        put_conditions(out, pod);
        put_containers(out, pod, true);
        put_containers(out, pod, false);
      }
    });
  });
  return std::move(out).take();
}

}  // namespace berth::sim
