#include "control/bypass.h"

#include <algorithm>

#include "text/path.h"

namespace berth::control {

namespace {

using text::Value;

constexpr std::string_view kVisible = "NVIDIA_VISIBLE_DEVICES";
constexpr std::string_view kDeviceMounts = "/var/run/nvidia-container-devices";
constexpr std::string_view kCdiNotes = "cdi.k8s.io/";
// Files of the host by which GPUs are reached: the devices, the driver, and whoever hands them out.
constexpr std::string_view kHostGpuPaths[] = {"/dev/nvidia",
                                              "/dev/dri",
                                              "/run/nvidia",
                                              "/var/run/nvidia",
                                              "/run/cdi",
                                              "/var/run/cdi",
                                              "/etc/cdi",
                                              "/var/lib/kubelet/device-plugins",
                                              "/var/lib/kubelet/pod-resources"};
// Folders and sockets by which the rest of the node is reached, GPUs among it: files of processes,
// devices by their number, whoever starts containers.
constexpr std::string_view kHostWays[] = {"/proc",
                                          "/dev/char",
                                          "/run/containerd",
                                          "/var/run/containerd",
                                          "/run/k3s/containerd",
                                          "/var/run/k3s/containerd",
                                          "/run/docker.sock",
                                          "/var/run/docker.sock",
                                          "/run/cri-dockerd.sock",
                                          "/var/run/cri-dockerd.sock",
                                          "/run/crio",
                                          "/var/run/crio",
                                          "/run/podman",
                                          "/var/run/podman"};

// As the kernel walks it: "//dev/./nvidia0/" is "/dev/nvidia0".
std::string plain_path(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (part == ".." && !parts.empty()) parts.pop_back();
    if (!part.empty() && part != "." && part != "..") parts.push_back(part);
  }
  std::string out;
  for (const std::string_view part : parts) out.append("/").append(part);
  return out.empty() ? "/" : out;
}

// It is one of them, inside one, or a folder around one.
bool reaches_gpus(std::string_view path) {
  const std::string plain = plain_path(path);
  const std::string folder = plain == "/" ? plain : plain + '/';
  const auto around = [&](std::string_view way) { return way.starts_with(folder); };
  return std::any_of(
             std::begin(kHostGpuPaths), std::end(kHostGpuPaths),
             [&](std::string_view gpus) { return plain.starts_with(gpus) || around(gpus); }) ||
         std::any_of(std::begin(kHostWays), std::end(kHostWays), [&](std::string_view way) {
           return plain == way || plain.starts_with(std::string(way) + '/') || around(way);
         });
}

class Search {
 public:
  explicit Search(std::string_view at) : at_(at.empty() ? "" : std::string(at) + '.') {}

  void say(const std::string& where, std::string_view what) {
    if (found_.size() < kMostBypasses) found_.push_back(at_ + where + ": " + std::string(what));
  }

  // By resources, or by annotations that count as holding some on the node where it is.
  static bool holds_gpus(const Value& pod, const Value& spec) {
    if (const Value* notes = find(pod.find("metadata"), "annotations")) {
      for (const char* key : {"gpu-fraction", "gpu-memory", "berth.dev/gpus"}) {
        if (notes->find(key) != nullptr) return true;
      }
    }
    for (const char* list : {"containers", "initContainers"}) {
      const Value* containers = spec.find(list);
      for (std::size_t i = 0; containers != nullptr && i < containers->items().size(); ++i) {
        const Value* limits = find(containers->items()[i].find("resources"), "limits");
        if (limits == nullptr) continue;
        for (const text::Member& limit : limits->members()) {
          if (limit.key.starts_with("nvidia.com/")) return true;
        }
      }
    }
    return false;
  }

  void look_at_pod(const Value& pod) {
    if (const Value* notes = find(pod.find("metadata"), "annotations")) {
      for (const text::Member& note : notes->members()) {
        if (!note.key.starts_with(kCdiNotes)) continue;
        say("metadata.annotations", "cdi.k8s.io/ names devices that nobody gave it");
        break;
      }
    }
    const Value* spec = pod.find("spec");
    if (spec == nullptr) return;
    if (!text_at(*spec, "nodeName").empty() && holds_gpus(pod, *spec)) {
      say("spec.nodeName", "it takes GPUs of a node of its own choice, past queues and quota");
    }
    if (const Value* pid = spec->find("hostPID"); pid != nullptr && pid->as_bool()) {
      say("spec.hostPID", "it sees the processes of every container of the node, and their files");
    }
    const Value* volumes = spec->find("volumes");
    for (std::size_t i = 0; volumes != nullptr && i < volumes->items().size(); ++i) {
      const Value* host = volumes->items()[i].find("hostPath");
      const std::string_view path = host == nullptr ? "" : text_at(*host, "path");
      if (path.empty() || !reaches_gpus(path)) continue;
      say("spec.volumes[" + std::to_string(i) + "].hostPath", "it leads to the node's GPUs");
    }
    for (const char* list : {"containers", "initContainers"}) look_at_containers(*spec, list);
  }

  void look_at_containers(const Value& spec, const char* list) {
    const Value* containers = spec.find(list);
    for (std::size_t i = 0; containers != nullptr && i < containers->items().size(); ++i) {
      const Value& container = containers->items()[i];
      const std::string where = "spec." + std::string(list) + '[' + std::to_string(i) + ']';
      const Value* privileged = find(container.find("securityContext"), "privileged");
      if (privileged != nullptr && privileged->as_bool()) {
        say(where + ".securityContext.privileged", "it opens every device of the node");
      }
      look_at_variables(container, where);
      const Value* mounts = container.find("volumeMounts");
      for (std::size_t j = 0; mounts != nullptr && j < mounts->items().size(); ++j) {
        const std::string path = plain_path(text_at(mounts->items()[j], "mountPath"));
        if (!path.starts_with(kDeviceMounts)) continue;
        say(where + ".volumeMounts[" + std::to_string(j) + ']',
            "NVIDIA's runtime reads devices from its path; ask for nvidia.com/gpu");
      }
    }
  }

  // "void" and "none" ask for nothing; what is taken from elsewhere is not known. Neither is what
  // an image or envFrom brings: control/webhook.h sets the variable against it.
  void look_at_variables(const Value& container, const std::string& where) {
    const Value* variables = container.find("env");
    for (std::size_t i = 0; variables != nullptr && i < variables->items().size(); ++i) {
      const Value& variable = variables->items()[i];
      if (text_at(variable, "name") != kVisible) continue;
      const std::string_view value = text_at(variable, "value");
      const bool none = value.empty() || value == "void" || value == "none";
      if (none && variable.find("valueFrom") == nullptr) continue;
      say(where + ".env[" + std::to_string(i) + ']',
          "NVIDIA_VISIBLE_DEVICES is not how GPUs are given; ask for nvidia.com/gpu");
    }
  }

  std::vector<std::string> take() && { return std::move(found_); }

 private:
  std::string at_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> find_bypasses(const Value& pod, std::string_view at, bool fresh) {
  Search search(at);
  if (!fresh) {
    search.look_at_pod(pod);
  } else if (const Value* spec = pod.find("spec")) {
    search.look_at_containers(*spec, "ephemeralContainers");
  }
  return std::move(search).take();
}

}  // namespace berth::control
