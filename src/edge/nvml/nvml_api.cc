#include "edge/nvml/nvml_api.h"

#include <dlfcn.h>

#include <vector>

namespace berth::nvml {
namespace {

// Below a driver root, in the order they are tried.
constexpr std::string_view kLibraryFolders[] = {
    "usr/lib64",       "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib",
    "lib64",           "lib/x86_64-linux-gnu",     "lib/aarch64-linux-gnu",     "lib",
    "usr/local/lib64", "usr/local/nvidia/lib64"};

struct Symbols {
  void* library;

  template <class Function>
  void find(Function& into, const char* name, const char* older = nullptr) const {
    void* symbol = dlsym(library, name);
    if (symbol == nullptr && older != nullptr) symbol = dlsym(library, older);
    into = reinterpret_cast<Function>(symbol);
  }
};

void find_device_functions(const Symbols& symbols, Api& api) {
  symbols.find(api.init, "nvmlInit_v2");
  symbols.find(api.driver_version, "nvmlSystemGetDriverVersion");
  symbols.find(api.cuda_version, "nvmlSystemGetCudaDriverVersion_v2",
               "nvmlSystemGetCudaDriverVersion");
  symbols.find(api.device_count, "nvmlDeviceGetCount_v2");
  symbols.find(api.device_by_index, "nvmlDeviceGetHandleByIndex_v2");
  symbols.find(api.uuid, "nvmlDeviceGetUUID");
  symbols.find(api.name, "nvmlDeviceGetName");
  symbols.find(api.minor, "nvmlDeviceGetMinorNumber");
  symbols.find(api.pci_info, "nvmlDeviceGetPciInfo_v3");
  symbols.find(api.compute_capability, "nvmlDeviceGetCudaComputeCapability");
  symbols.find(api.memory, "nvmlDeviceGetMemoryInfo");
  symbols.find(api.memory_v2, "nvmlDeviceGetMemoryInfo_v2");
  symbols.find(api.link_state, "nvmlDeviceGetNvLinkState");
  symbols.find(api.link_remote_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
  symbols.find(api.link_remote_type, "nvmlDeviceGetNvLinkRemoteDeviceType");
  symbols.find(api.fabric, "nvmlDeviceGetGpuFabricInfo");
  symbols.find(api.fabric_v, "nvmlDeviceGetGpuFabricInfoV");
  symbols.find(api.mig_mode, "nvmlDeviceGetMigMode");
  symbols.find(api.mig_count, "nvmlDeviceGetMaxMigDeviceCount");
  symbols.find(api.mig_by_index, "nvmlDeviceGetMigDeviceHandleByIndex");
  symbols.find(api.gpu_instance_id, "nvmlDeviceGetGpuInstanceId");
  symbols.find(api.compute_instance_id, "nvmlDeviceGetComputeInstanceId");
  symbols.find(api.attributes, "nvmlDeviceGetAttributes_v2");
  symbols.find(api.gpu_instance_by_id, "nvmlDeviceGetGpuInstanceById");
  symbols.find(api.gpu_instance_info, "nvmlGpuInstanceGetInfo");
  symbols.find(api.gpu_instance_profile, "nvmlDeviceGetGpuInstanceProfileInfo");
}

void find_mig_functions(const Symbols& symbols, Api& api) {
  symbols.find(api.set_mig_mode, "nvmlDeviceSetMigMode");
  symbols.find(api.possible_placements, "nvmlDeviceGetGpuInstancePossiblePlacements_v2",
               "nvmlDeviceGetGpuInstancePossiblePlacements");
  symbols.find(api.create_gpu_instance, "nvmlDeviceCreateGpuInstanceWithPlacement");
  symbols.find(api.destroy_gpu_instance, "nvmlGpuInstanceDestroy");
  symbols.find(api.gpu_instances, "nvmlDeviceGetGpuInstances");
  symbols.find(api.compute_profile, "nvmlGpuInstanceGetComputeInstanceProfileInfo");
  symbols.find(api.create_compute_instance, "nvmlGpuInstanceCreateComputeInstance");
  symbols.find(api.destroy_compute_instance, "nvmlComputeInstanceDestroy");
  symbols.find(api.compute_instances, "nvmlGpuInstanceGetComputeInstances");
  symbols.find(api.compute_instance_info, "nvmlComputeInstanceGetInfo_v2",
               "nvmlComputeInstanceGetInfo");
}

void find_reading_functions(const Symbols& symbols, Api& api) {
  symbols.find(api.clock, "nvmlDeviceGetClockInfo");
  symbols.find(api.temperature, "nvmlDeviceGetTemperature");
  symbols.find(api.power, "nvmlDeviceGetPowerUsage");
  symbols.find(api.energy, "nvmlDeviceGetTotalEnergyConsumption");
  symbols.find(api.utilization, "nvmlDeviceGetUtilizationRates");
  symbols.find(api.encoder, "nvmlDeviceGetEncoderUtilization");
  symbols.find(api.decoder, "nvmlDeviceGetDecoderUtilization");
  symbols.find(api.pcie_replays, "nvmlDeviceGetPcieReplayCounter");
  symbols.find(api.remapped_rows, "nvmlDeviceGetRemappedRows");
  symbols.find(api.ecc_errors, "nvmlDeviceGetTotalEccErrors");
  symbols.find(api.clock_reasons, "nvmlDeviceGetCurrentClocksEventReasons",
               "nvmlDeviceGetCurrentClocksThrottleReasons");
  symbols.find(api.fields, "nvmlDeviceGetFieldValues");
  // Version 2 has the layout of version 3.
  symbols.find(api.compute_processes, "nvmlDeviceGetComputeRunningProcesses_v3",
               "nvmlDeviceGetComputeRunningProcesses_v2");
  symbols.find(api.graphics_processes, "nvmlDeviceGetGraphicsRunningProcesses_v3",
               "nvmlDeviceGetGraphicsRunningProcesses_v2");
  symbols.find(api.process_utilization, "nvmlDeviceGetProcessUtilization");
  symbols.find(api.gpm_support, "nvmlGpmQueryDeviceSupport");
  symbols.find(api.gpm_alloc, "nvmlGpmSampleAlloc");
  symbols.find(api.gpm_free, "nvmlGpmSampleFree");
  symbols.find(api.gpm_sample, "nvmlGpmSampleGet");
  symbols.find(api.gpm_mig_sample, "nvmlGpmMigSampleGet");
  symbols.find(api.gpm_metrics, "nvmlGpmMetricsGet");
  symbols.find(api.event_set_create, "nvmlEventSetCreate");
  symbols.find(api.event_set_free, "nvmlEventSetFree");
  symbols.find(api.supported_events, "nvmlDeviceGetSupportedEventTypes");
  symbols.find(api.register_events, "nvmlDeviceRegisterEvents");
  symbols.find(api.event_wait, "nvmlEventSetWait_v2");
}

std::vector<std::string> candidates(const std::string& library, const std::string& driver_root) {
  if (library.starts_with('/')) return {library};
  std::vector<std::string> out;
  if (!driver_root.empty() && driver_root != "/") {
    for (const std::string_view folder : kLibraryFolders) {
      out.push_back(driver_root + "/" + std::string(folder) + "/" + library);
    }
    return out;
  }
  return {library};
}

}  // namespace

std::string_view describe_return(Return code) {
  switch (code) {
    case kSuccess:
      return "success";
    case kUninitialized:
      return "not initialised";
    case kInvalidArgument:
      return "invalid argument";
    case kNotSupported:
    case kFunctionNotFound:
      return "not supported by this driver";
    case kNoPermission:
      return "no permission";
    case kNotFound:
      return "not found";
    case kDriverNotLoaded:
      return "the NVIDIA driver is not loaded";
    case kTimeout:
      return "timeout";
    case kGpuLost:
      return "the GPU is lost";
    case kResetRequired:
      return "the GPU needs a reset";
    case kVersionMismatch:
      return "the library and the kernel module are of different versions";
    case kInUse:
      return "in use by another client";
    case kUnknownError:
      return "unknown error";
    default:
      return "error";
  }
}

std::string failure(std::string_view what, Return code) {
  return std::string(what) + ": " + std::string(describe_return(code)) + " (code " +
         std::to_string(code) + ")";
}

Result<std::shared_ptr<const Api>> load_nvml(const std::string& library,
                                             const std::string& driver_root) {
  void* opened = nullptr;
  std::string said;
  for (const std::string& path : candidates(library, driver_root)) {
    opened = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (opened != nullptr) break;
    const char* error = dlerror();  // NOLINT(concurrency-mt-unsafe): glibc keeps it per thread
    if (said.empty()) said = error == nullptr ? "no reason given" : error;
  }
  if (opened == nullptr) {
    std::string where = driver_root.empty() ? "" : " below " + driver_root;
    return Error(Code::kUnavailable, library + " is not found" + where + " (" + said + ")");
  }
  auto api = std::make_shared<Api>();
  const Symbols symbols{opened};
  find_device_functions(symbols, *api);
  find_mig_functions(symbols, *api);
  find_reading_functions(symbols, *api);
  if (api->init == nullptr || api->device_count == nullptr || api->device_by_index == nullptr ||
      api->uuid == nullptr) {
    return Error(Code::kUnavailable, library + " is not a management library that berth knows");
  }
  return std::shared_ptr<const Api>(std::move(api));
}

}  // namespace berth::nvml
