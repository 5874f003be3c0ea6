#include "people/why/no_gpu_pod.h"

#include <algorithm>
#include <charconv>

#include "kinds/readers.h"
#include "text/path.h"

namespace berth::people {

namespace {

std::string shown_amount(const text::Value& v) {
  return std::string(v.is_string() ? v.string() : v.number_text());
}

bool is_gpu_name(std::string_view name) {
  return name == "nvidia.com/gpu" || name == "nvidia.com/gpu.shared" ||
         name.starts_with("nvidia.com/mig-");
}

const text::Value* status_of(const text::Value& pod, std::string_view list, std::string_view name) {
  const text::Value* statuses = at(pod, "status").find(list);
  if (statuses == nullptr) return nullptr;
  for (const text::Value& each : statuses->items()) {
    if (text_at(each, "name") == name) return &each;
  }
  return nullptr;
}

std::optional<int> leading_number(std::string_view& text) {
  int out = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (code != std::errc() || out < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return out;
}

// The version after a word: "cuda12.1", "cuda-12.1", "cuda:12.4.1", "cuda>=12.4".
std::optional<CudaVersion> cuda_after(std::string_view text, std::string_view word) {
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string_view::npos; ++at) {
    std::string_view rest = text.substr(at + word.size());
    const std::size_t skip = rest.find_first_not_of("-_:");
    if (skip != std::string_view::npos) rest.remove_prefix(skip);
    if (const auto version = parse_cuda(rest)) return version;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> GpuContainer::env(std::string_view key) const {
  std::optional<std::string> out;
  const text::Value* list = spec->find("env");
  if (list == nullptr) return out;
  for (const text::Value& each : list->items()) {
    if (text_at(each, "name") != key) continue;
    if (each.find("valueFrom") != nullptr) return std::nullopt;
    out = text_at(each, "value");  // the last one counts
  }
  return out;
}

std::vector<GpuContainer> gpu_containers(const text::Value& pod) {
  std::vector<GpuContainer> out;
  for (const auto& [list, statuses] : {std::pair("initContainers", "initContainerStatuses"),
                                       std::pair("containers", "containerStatuses")}) {
    const text::Value* containers = at(pod, "spec").find(list);
    if (containers == nullptr) continue;
    for (const text::Value& each : containers->items()) {
      GpuContainer one;
      one.spec = &each;
      one.name = text_at(each, "name");
      one.image = text_at(each, "image");
      one.status = status_of(pod, statuses, one.name);
      const text::Value* limits = find(each, "resources.limits");
      if (limits != nullptr) {
        for (const text::Member& member : limits->members()) {
          const std::string amount = shown_amount(member.value);
          if (is_gpu_name(member.key) && !amount.empty() && amount != "0") {
            one.asks.emplace_back(std::string(member.key), amount);
          }
        }
      }
      out.push_back(std::move(one));
    }
  }
  return out;
}

std::optional<CudaVersion> parse_cuda(std::string_view text) {
  CudaVersion out;
  const auto major = leading_number(text);
  if (!major || *major < 8 || *major > 99) return std::nullopt;  // older ones are no CUDA we meet
  out.major = *major;
  if (!text.starts_with('.')) return out;
  text.remove_prefix(1);
  if (const auto minor = leading_number(text)) out.minor = *minor;
  return out;
}

std::optional<CudaVersion> wanted_cuda(const GpuContainer& container, std::string& by) {
  if (const auto required = container.env("NVIDIA_REQUIRE_CUDA")) {
    by = "NVIDIA_REQUIRE_CUDA";
    if (const auto version = cuda_after(*required, "cuda>=")) return version;
  }
  if (const auto stated = container.env("CUDA_VERSION")) {
    by = "CUDA_VERSION";
    if (const auto version = parse_cuda(*stated)) return version;
  }
  by = "its image";
  const std::size_t slash = container.image.find_last_of('/');
  std::string name = container.image.substr(slash == std::string::npos ? 0 : slash + 1);
  name = name.substr(0, name.find('@'));
  return cuda_after(name, "cuda");
}

std::string known_message(std::string_view text) {
  struct Known {
    std::string_view part, means;
  };
  static constexpr Known kMessages[] = {
      {"unresolvable CDI devices",
       "the runtime does not know the CDI device: the spec in /var/run/cdi is missing or stale"},
      {"CDI device injection", "the runtime could not inject the CDI device"},
      {"Driver/library version mismatch",
       "the driver was upgraded under a loaded kernel module: reload it or reboot the node"},
      {"driver not loaded", "the kernel module of the driver is not loaded"},
      {"nvml error", "the driver does not answer"},
      {"unsatisfied condition: cuda",
       "the image wants a newer CUDA than the driver of the node has"},
      {"unsatisfied condition", "the image wants another driver or GPU than the node has"},
      {"unknown device", "the runtime was given a device that is not there any more"},
      {"no runtime for", "the runtime class names a handler that the node does not have"},
      {"cannot allocate unregistered device",
       "the device plugin was not registered when the pod came"},
      {"no healthy devices present", "the kubelet knows no healthy device"},
      {"no longer healthy", "a device that it held is not healthy any more"},
      {"requested number of devices unavailable",
       "the kubelet had fewer devices free than the scheduler thought"},
      {"TopologyAffinityError", "the kubelet could not align devices and CPUs"},
      {"CUDA driver version is insufficient", "the program wants a newer driver than the node has"},
      {"no CUDA-capable device", "the program sees no device"},
  };
  for (const Known& known : kMessages) {
    if (text.find(known.part) != std::string_view::npos) return std::string(known.means);
  }
  return {};
}

}  // namespace berth::people
