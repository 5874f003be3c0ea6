#include "people/why/no_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "kinds/pod_body.h"
#include "kinds/readers.h"
#include "people/view/words.h"
#include "people/why/no_gpu_pod.h"
#include "text/path.h"

namespace berth::people {

namespace {

std::string joined_names(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

std::string first_line(std::string_view text, std::size_t most = 300) {
  std::string out(text.substr(0, std::min(text.find('\n'), text.size())));
  if (out.size() > most) out = out.substr(0, most) + "...";
  return out;
}

class GpuChecker {
 public:
  explicit GpuChecker(const NoGpuEvidence& evidence)
      : e_(evidence), containers_(gpu_containers(*evidence.pod)) {
    answer_.ns = text_at(e_.pod, "metadata.namespace");
    if (answer_.ns.empty()) answer_.ns = "default";
    answer_.name = text_at(e_.pod, "metadata.name");
    answer_.node = text_at(e_.pod, "spec.nodeName");
  }

  NoGpuAnswer run() {
    check_asks();
    check_placed();
    check_node();
    check_allocation();
    check_cdi();
    check_runtime_class();
    check_environment();
    check_cuda();
    check_security();
    check_health();
    check_containers();
    conclude();
    return std::move(answer_);
  }

 private:
  void say(const char* id, CheckState state, CheckOwner owner, std::string saw,
           std::string fix = {}) {
    answer_.checks.push_back({id, state, owner, std::move(saw), std::move(fix)});
  }
  void good(const char* id, std::string saw) {
    say(id, CheckState::kOk, CheckOwner::kPod, std::move(saw));
  }
  void dark(const char* id, std::string saw, std::string fix = {}) {
    say(id, CheckState::kUnknown, CheckOwner::kPod, std::move(saw), std::move(fix));
  }

  bool bound() const { return !answer_.node.empty(); }
  std::string pod_word() const { return answer_.ns + '/' + answer_.name; }

  void check_asks() {
    std::vector<std::string> with, without, claims;
    for (const GpuContainer& each : containers_) {
      if (each.asks.empty()) {
        without.push_back(each.name);
      } else {
        with.push_back(fmt::format("{} asks for {} {}", each.name, each.asks.front().second,
                                   each.asks.front().first));
      }
    }
    if (const text::Value* list = find(*e_.pod, "spec.resourceClaims")) {
      for (const text::Value& each : list->items())
        claims.push_back(std::string(text_at(each, "name")));
    }
    asks_ = !with.empty();
    if (with.empty() && !claims.empty()) {
      return dark("asks", "it asks by ResourceClaim: " + joined_names(claims),
                  "kubectl get resourceclaims -n " + answer_.ns);
    }
    if (with.empty()) {
      return say("asks", CheckState::kFailed, CheckOwner::kPod,
                 "no container has nvidia.com/gpu in resources.limits, so none gets a device",
                 "add resources.limits: {nvidia.com/gpu: 1} to the container that needs it");
    }
    if (!without.empty()) {
      return say("asks", CheckState::kWarning, CheckOwner::kPod,
                 joined_names(with) + "; " + joined_names(without) +
                     " asks for none and sees none: devices belong to one container",
                 "look inside the right one: kubectl exec " + answer_.name + " -n " + answer_.ns +
                     " -c " + containers_with_gpu() + " -- nvidia-smi");
    }
    good("asks", joined_names(with));
  }

  std::string containers_with_gpu() const {
    for (const GpuContainer& each : containers_) {
      if (!each.asks.empty()) return each.name;
    }
    return {};
  }

  void check_placed() {
    const std::string phase(text_at(e_.pod, "status.phase"));
    const std::string reason(text_at(e_.pod, "status.reason"));
    const std::string message(text_at(e_.pod, "status.message"));
    if (!bound()) {
      return say("placed", CheckState::kFailed, CheckOwner::kTime, "it has no node yet",
                 "berth why pod " + pod_word());
    }
    if (phase == "Failed" && !reason.empty()) {
      const std::string means = known_message(reason + ' ' + message);
      return say("placed", CheckState::kFailed, CheckOwner::kPlatform,
                 fmt::format("{} refused it: {}: {}{}", answer_.node, reason, first_line(message),
                             means.empty() ? "" : " (" + means + ")"),
                 "delete the pod so that it is placed anew; berth agent status on " + answer_.node +
                     " says whether the node is ready");
    }
    if (phase == "Succeeded" || phase == "Failed") {
      return good("placed", fmt::format("it ran on {} and has ended ({})", answer_.node, phase));
    }
    good("placed", "it is on " + answer_.node);
  }

  void check_node() {
    if (!bound()) return dark("node", "no node to look at");
    if (e_.node == nullptr) {
      if (e_.node_unseen) return dark("node", "you may not get nodes", "ask who may");
      return say("node", CheckState::kFailed, CheckOwner::kPlatform,
                 "its node " + answer_.node + " does not exist",
                 "delete the pod so that it is placed anew");
    }
    const text::Value* ready = find_type(at(e_.node, "status.conditions"), "GpuReady");
    if (ready != nullptr && text_at(ready, "status") != "True") {
      return say(
          "node", CheckState::kFailed, CheckOwner::kPlatform,
          fmt::format("{} says GpuReady {}: {}: {}", answer_.node,
                      std::string(text_at(ready, "status")), std::string(text_at(ready, "reason")),
                      first_line(std::string(text_at(ready, "message")))),
          "docs/health.md has each reason; on the node: berth agent status");
    }
    for (const GpuContainer& each : containers_) {
      for (const auto& [resource, amount] : each.asks) {
        const text::Value* offered = at(*e_.node, "status.allocatable").find(resource);
        const std::string text =
            offered == nullptr
                ? "none"
                : std::string(offered->is_string() ? offered->string() : offered->number_text());
        if (text == "none" || text == "0") {
          return say("node", CheckState::kFailed, CheckOwner::kPlatform,
                     fmt::format("{} offers {} of {}", answer_.node, text, resource),
                     "start the agent (or another device plugin) on the node and see "
                     "berth agent status there");
        }
      }
    }
    if (ready == nullptr) {
      return dark("node", answer_.node + " offers the resource; no agent of berth tells more",
                  "install the agent to see driver, CDI and health");
    }
    good("node", answer_.node + " is GpuReady and offers what it asks for");
  }

  // Devices by who holds them, as the kubelet told the agent.
  std::vector<int> held() const {
    std::vector<int> out;
    const std::string uid(text_at(e_.pod, "metadata.uid"));
    const text::Value* gpus = e_.gpu_node == nullptr ? nullptr : find(*e_.gpu_node, "status.gpus");
    if (gpus == nullptr || uid.empty()) return out;
    for (const text::Value& gpu : gpus->items()) {
      const text::Value* holders = gpu.find("holders");
      const text::Value* index = gpu.find("index");
      if (holders == nullptr || index == nullptr || !index->as_int64()) continue;
      for (const text::Value& holder : holders->items()) {
        if (holder.string() == uid) out.push_back(static_cast<int>(*index->as_int64()));
      }
    }
    return out;
  }

  void check_allocation() {
    if (!bound() || !asks_) return dark("allocation", "nothing was to be allocated");
    if (e_.gpu_node == nullptr) {
      return dark("allocation",
                  e_.gpu_node_unseen ? "you may not get gpunodes.berth.dev"
                                     : "there is no GpuNode " + answer_.node,
                  "on the node: berth agent status");
    }
    const std::vector<int> have = held();
    const std::string hint =
        std::string(at(e_.pod, "metadata.annotations")[kinds::kGpusAnnotation].string());
    if (have.empty()) {
      return say("allocation", CheckState::kFailed, CheckOwner::kPlatform,
                 "the kubelet gave it no GPU of " + answer_.node +
                     (hint.empty() ? "" : ", though " + hint + " was meant for it"),
                 "is its container running? else delete the pod so that it is placed anew");
    }
    std::set<int> meant;
    for (std::size_t at = 0; at < hint.size();) {
      const std::size_t end = std::min(hint.find(',', at), hint.size());
      const std::string word = hint.substr(at, end - at);
      if (!word.empty() && word.size() < 4 &&
          word.find_first_not_of("0123456789") == std::string::npos) {
        meant.insert(std::stoi(word));
      }
      at = end + 1;
    }
    const std::string text = "it holds GPU " + show_ranges(have);
    if (!meant.empty() && meant != std::set<int>(have.begin(), have.end())) {
      return say("allocation", CheckState::kWarning, CheckOwner::kPlatform,
                 text + ", and " + hint + " was meant for it: the kubelet chose others",
                 "nothing for this pod; two schedulers on one node do this");
    }
    good("allocation", text + (hint.empty() ? "" : ", as was meant"));
  }

  void check_cdi() {
    for (const GpuContainer& each : containers_) {
      const std::string said = waiting_message(each);
      if (said.find("CDI") == std::string::npos) continue;
      return say("cdi", CheckState::kFailed, CheckOwner::kPlatform, first_line(said),
                 "containerd needs enable_cdi and the folder of the spec (docs/cdi.md); the agent "
                 "writes the spec: berth agent status");
    }
    if (const text::Value* step = agent_step("cdi")) {
      const bool fine = text_at(step, "state") == "ok";
      const std::string text = "the agent says: " + std::string(text_at(step, "text"));
      if (fine) return good("cdi", text);
      return say("cdi", CheckState::kFailed, CheckOwner::kPlatform, text, "see docs/cdi.md");
    }
    const text::Value* ready = find_type(at(e_.node, "status.conditions"), "GpuReady");
    if (ready != nullptr && text_at(ready, "status") == "True") {
      return good("cdi", "the node is GpuReady, which includes its CDI spec");
    }
    dark("cdi", "no evidence from here", "on the node: berth agent status, nvidia-ctk cdi list");
  }

  const text::Value* agent_step(std::string_view name) const {
    const text::Value* steps = e_.agent == nullptr ? nullptr : e_.agent->find("steps");
    if (steps == nullptr) return nullptr;
    for (const text::Value& step : steps->items()) {
      if (text_at(step, "step") == name) return &step;
    }
    return nullptr;
  }

  static std::string waiting_message(const GpuContainer& container) {
    return std::string(text_at(container.status, "state.waiting.message"));
  }

  void check_runtime_class() {
    const std::string wanted(text_at(e_.pod, "spec.runtimeClassName"));
    if (wanted.empty()) {
      return good("runtime-class", "none is asked for: devices come by CDI");
    }
    if (!e_.runtime_classes_seen) {
      return dark("runtime-class", "it asks for " + wanted, "kubectl get runtimeclass " + wanted);
    }
    for (const text::Value* each : e_.runtime_classes) {
      if (text_at(each, "metadata.name") != wanted) continue;
      return good("runtime-class",
                  fmt::format("{} (handler {})", wanted, std::string(text_at(each, "handler"))));
    }
    say("runtime-class", CheckState::kFailed, CheckOwner::kPod,
        "there is no RuntimeClass " + wanted,
        "take spec.runtimeClassName away (CDI needs none), or create the class");
  }

  void check_environment() {
    for (const GpuContainer& each : containers_) {
      if (each.asks.empty()) continue;
      if (const auto cuda = each.env("CUDA_VISIBLE_DEVICES")) {
        if (cuda->empty() || *cuda == "-1" || *cuda == "NoDevFiles") {
          return say("environment", CheckState::kFailed, CheckOwner::kPod,
                     fmt::format("{} sets CUDA_VISIBLE_DEVICES to \"{}\", which hides every GPU",
                                 each.name, *cuda),
                     "take it away: a container sees its own devices, numbered from 0");
        }
        if (beyond(*cuda, each)) {
          return say(
              "environment", CheckState::kFailed, CheckOwner::kPod,
              fmt::format("{} sets CUDA_VISIBLE_DEVICES to \"{}\", and has {}: CUDA stops at "
                          "the first that is not there",
                          each.name, *cuda, each.asks.front().second),
              "take it away: a container sees its own devices, numbered from 0");
        }
      }
      if (const auto nvidia = each.env("NVIDIA_VISIBLE_DEVICES")) {
        const bool hides = nvidia->empty() || *nvidia == "void" || *nvidia == "none";
        return say("environment", hides ? CheckState::kFailed : CheckState::kWarning,
                   CheckOwner::kPod,
                   fmt::format("{} sets NVIDIA_VISIBLE_DEVICES to \"{}\": {}", each.name, *nvidia,
                               hides ? "NVIDIA's runtime then gives no device"
                                     : "NVIDIA's runtime then gives those, not what was allocated"),
                   "take it away: what was allocated is set by the device plugin");
      }
      if (const auto abilities = each.env("NVIDIA_DRIVER_CAPABILITIES")) {
        const bool all = abilities->find("all") != std::string::npos;
        if (!all && abilities->find("compute") == std::string::npos) {
          return say("environment", CheckState::kWarning, CheckOwner::kPod,
                     fmt::format("{} sets NVIDIA_DRIVER_CAPABILITIES to \"{}\": without compute "
                                 "NVIDIA's runtime mounts no libcuda",
                                 each.name, *abilities),
                     "set it to compute,utility, or take it away");
        }
      }
    }
    good("environment", "nothing in it hides GPUs");
  }

  // An index that the container does not have.
  static bool beyond(std::string_view list, const GpuContainer& container) {
    int count = 0;
    for (const auto& [resource, amount] : container.asks) {
      if (amount.size() < 5 && amount.find_first_not_of("0123456789") == std::string::npos) {
        count += std::stoi(amount);
      }
    }
    const std::string_view first = list.substr(0, list.find(','));
    if (first.empty() || first.size() > 4) return false;
    if (first.find_first_not_of("0123456789") != std::string_view::npos) return false;
    return count > 0 && std::stoi(std::string(first)) >= count;
  }

  void check_cuda() {
    std::string driver(text_at(e_.gpu_node, "status.cudaVersion"));
    if (driver.empty()) {
      driver =
          std::string(text_at(e_.node, "metadata.labels[nvidia.com/cuda.runtime-version.full]"));
    }
    const auto offered = parse_cuda(driver);
    for (const GpuContainer& each : containers_) {
      if (each.asks.empty()) continue;
      std::string by;
      const auto wanted = wanted_cuda(each, by);
      if (!wanted) continue;
      const std::string want =
          fmt::format("{} wants CUDA {}.{} (by {})", each.name, wanted->major, wanted->minor, by);
      if (!offered) return dark("cuda", want + "; what the driver has is not known");
      const std::string has = ", the driver has " + driver;
      if (wanted->major > offered->major) {
        return say("cuda", CheckState::kFailed, CheckOwner::kPod, want + has,
                   fmt::format("use an image for CUDA {}, one with the cuda-compat package, or a "
                               "node with a newer driver",
                               offered->major));
      }
      if (*wanted > *offered) {
        return say("cuda", CheckState::kWarning, CheckOwner::kPod,
                   want + has + ": a minor version runs, but not code compiled at run time (PTX)",
                   "use an image for CUDA " + driver + ", or a node with a newer driver");
      }
      return good("cuda", want + has);
    }
    dark("cuda",
         std::string("the image does not say which CUDA it wants") +
             (driver.empty() ? "" : "; the driver has " + driver),
         "in the container: nvidia-smi, and nvcc --version");
  }

  void check_security() {
    for (const GpuContainer& each : containers_) {
      const text::Value* privileged = find(*each.spec, "securityContext.privileged");
      if (privileged != nullptr && privileged->as_bool()) {
        return say("security", CheckState::kWarning, CheckOwner::kPod,
                   each.name + " is privileged: it sees every device of the node, held or not",
                   "take privileged away: an allocated GPU needs no right");
      }
    }
    if (const text::Value* volumes = find(*e_.pod, "spec.volumes")) {
      for (const text::Value& each : volumes->items()) {
        const std::string path(text_at(each, "hostPath.path"));
        if (path != "/dev" && !path.starts_with("/dev/nvidia")) continue;
        return say("security", CheckState::kWarning, CheckOwner::kPod,
                   "it mounts " + path +
                       " of the node: device cgroups refuse what is not "
                       "allocated, and what opens belongs to others",
                   "take the volume away and ask by resources.limits");
      }
    }
    good("security", "not privileged, mounts no device of the node");
  }

  void check_health() {
    const std::vector<int> have = held();
    const text::Value* gpus = e_.gpu_node == nullptr ? nullptr : find(*e_.gpu_node, "status.gpus");
    if (gpus != nullptr) {
      for (const text::Value& gpu : gpus->items()) {
        const text::Value* index = gpu.find("index");
        const auto number = index == nullptr ? std::nullopt : index->as_int64();
        if (!number || std::find(have.begin(), have.end(), *number) == have.end()) continue;
        const std::string state(text_at(gpu, "health.state"));
        if (state.empty() || state == "Healthy") continue;
        return say("health", CheckState::kFailed, CheckOwner::kPlatform,
                   fmt::format("GPU {} of {} is {}: {}", *number, answer_.node, state,
                               first_line(std::string(text_at(gpu, "health.reason")))),
                   "delete the pod so that it gets another GPU; docs/health.md says what heals "
                   "this one");
      }
    }
    for (const GpuContainer& each : containers_) {
      if (const std::string sick = sick_by_kubelet(each); !sick.empty()) {
        return say("health", CheckState::kFailed, CheckOwner::kPlatform,
                   "the kubelet says that " + sick + " of " + each.name + " is Unhealthy",
                   "delete the pod so that it gets another GPU");
      }
    }
    const text::Value* healthy = find_type(at(e_.node, "status.conditions"), "GpuHealthy");
    if (have.empty() && healthy != nullptr && text_at(healthy, "status") == "False") {
      return say("health", CheckState::kWarning, CheckOwner::kPlatform,
                 answer_.node + ": " + first_line(std::string(text_at(healthy, "message"))),
                 "docs/health.md says what each code needs");
    }
    if (gpus == nullptr) return dark("health", "no GpuNode tells");
    good("health", have.empty() ? "it holds no GPU" : "GPU " + show_ranges(have) + " is healthy");
  }

  static std::string sick_by_kubelet(const GpuContainer& container) {
    const text::Value* list =
        container.status == nullptr ? nullptr : container.status->find("allocatedResourcesStatus");
    if (list == nullptr) return {};
    for (const text::Value& each : list->items()) {
      const text::Value* resources = each.find("resources");
      if (resources == nullptr) continue;
      for (const text::Value& one : resources->items()) {
        if (text_at(one, "health") == "Unhealthy") return std::string(text_at(one, "resourceID"));
      }
    }
    return {};
  }

  void check_containers() {
    if (!bound()) return dark("container", "no container was started");
    for (const GpuContainer& each : containers_) {
      for (const text::Path& state : std::initializer_list<text::Path>{
               "state.waiting", "state.terminated", "lastState.waiting", "lastState.terminated"}) {
        const text::Value& words = at(each.status, state);
        const std::string reason(text_at(words, "reason")), message(text_at(words, "message"));
        const std::string means = known_message(message);
        if (means.empty()) continue;
        return say("container", CheckState::kFailed, CheckOwner::kPlatform,
                   fmt::format("{}: {}: {} ({})", each.name, reason, first_line(message), means),
                   "see the check that this names; then delete the pod so that it starts anew");
      }
      const std::string waits(text_at(each.status, "state.waiting.reason"));
      if (waits.empty() || waits == "ContainerCreating" || waits == "PodInitializing") continue;
      return say(
          "container", CheckState::kFailed, CheckOwner::kPod,
          fmt::format("{} waits: {}: {}", each.name, waits, first_line(waiting_message(each))),
          "kubectl describe pod " + answer_.name + " -n " + answer_.ns);
    }
    const text::Value* statuses = find(*e_.pod, "status.containerStatuses");
    if (statuses == nullptr || statuses->size() == 0) {
      return dark("container", "the kubelet has not told of any container yet");
    }
    good("container", "no container complains");
  }

  // What fails first on the way counts; what the pod's owner can mend comes before the rest.
  void conclude() {
    const GpuCheck* first = nullptr;
    for (const GpuCheck& check : answer_.checks) {
      if (check.state == CheckState::kFailed && first == nullptr) first = &check;
    }
    const std::string who = pod_word();
    if (first != nullptr) {
      answer_.line = fmt::format("{}: {} ({})", who, first->saw, first->id);
      answer_.exit_code = first->owner == CheckOwner::kPod        ? 20
                          : first->owner == CheckOwner::kPlatform ? 40
                                                                  : 10;
      return;
    }
    int warnings = 0, unknown = 0;
    for (const GpuCheck& check : answer_.checks) {
      warnings += check.state == CheckState::kWarning ? 1 : 0;
      unknown += check.state == CheckState::kUnknown ? 1 : 0;
    }
    answer_.exit_code = warnings > 0 ? 10 : 0;
    answer_.line = fmt::format("{}: nothing that keeps GPUs from it was found", who);
    if (warnings > 0) answer_.line += "; " + show_count(warnings, "warning");
    if (unknown > 0) {
      answer_.line += fmt::format("; {} could not be looked at", show_count(unknown, "check"));
    }
  }

  const NoGpuEvidence& e_;
  std::vector<GpuContainer> containers_;
  bool asks_ = false;
  NoGpuAnswer answer_;
};

}  // namespace

std::string_view name(CheckState state) {
  constexpr std::string_view kNames[] = {"ok", "warning", "failed", "unknown"};
  return kNames[static_cast<std::size_t>(state)];
}

std::string_view name(CheckOwner owner) {
  constexpr std::string_view kNames[] = {"pod", "platform", "nobody"};
  return kNames[static_cast<std::size_t>(owner)];
}

NoGpuAnswer why_no_gpu(const NoGpuEvidence& evidence) { return GpuChecker(evidence).run(); }

}  // namespace berth::people
