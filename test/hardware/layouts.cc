// Our declarations beside the vendor's header, where there is one: sizes and offsets must agree.
#include <nvml.h>

#include <cstddef>
#include <cstdio>
#include <type_traits>

#include "edge/nvml/nvml_api.h"

using namespace berth;  // NOLINT

#define SAME(ours, theirs) static_assert(sizeof(nvml::ours) == sizeof(theirs))
#define SAME_AT(ours, a, theirs, b) static_assert(offsetof(nvml::ours, a) == offsetof(theirs, b))

SAME(PciInfo, nvmlPciInfo_t);
SAME_AT(PciInfo, pci_device_id, nvmlPciInfo_t, pciDeviceId);
SAME(Utilization, nvmlUtilization_t);
SAME(Memory, nvmlMemory_t);
SAME(MemoryV2, nvmlMemory_v2_t);
SAME_AT(MemoryV2, reserved, nvmlMemory_v2_t, reserved);
SAME_AT(MemoryV2, used, nvmlMemory_v2_t, used);
SAME(ProcessInfo, nvmlProcessInfo_t);
SAME_AT(ProcessInfo, gpu_instance, nvmlProcessInfo_t, gpuInstanceId);
SAME(ProcessUtilization, nvmlProcessUtilizationSample_t);
SAME_AT(ProcessUtilization, sm, nvmlProcessUtilizationSample_t, smUtil);
SAME(DeviceAttributes, nvmlDeviceAttributes_t);
SAME_AT(DeviceAttributes, memory_mib, nvmlDeviceAttributes_t, memorySizeMB);
SAME(FieldValue, nvmlFieldValue_t);
SAME_AT(FieldValue, value, nvmlFieldValue_t, value);
SAME(EventData, nvmlEventData_t);
SAME_AT(EventData, compute_instance, nvmlEventData_t, computeInstanceId);
SAME(GpuInstanceInfo, nvmlGpuInstanceInfo_t);
SAME_AT(GpuInstanceInfo, placement, nvmlGpuInstanceInfo_t, placement);
SAME(GpuInstanceProfile, nvmlGpuInstanceProfileInfo_t);
SAME(Placement, nvmlGpuInstancePlacement_t);
SAME(ComputeInstanceProfile, nvmlComputeInstanceProfileInfo_t);
SAME(ComputeInstanceInfo, nvmlComputeInstanceInfo_t);
SAME_AT(ComputeInstanceInfo, id, nvmlComputeInstanceInfo_t, id);
SAME(FabricInfo, nvmlGpuFabricInfo_t);
SAME(FabricInfoV2, nvmlGpuFabricInfo_v2_t);
SAME(GpmMetric, nvmlGpmMetric_t);
SAME_AT(GpmMetrics, metrics, nvmlGpmMetricsGet_t, metrics);
SAME(GpmSupport, nvmlGpmSupport_t);

static_assert(nvml::kGpmTensor == NVML_GPM_METRIC_ANY_TENSOR_UTIL);
static_assert(nvml::kGpmDram == NVML_GPM_METRIC_DRAM_BW_UTIL);
static_assert(nvml::kGpmFp64 == NVML_GPM_METRIC_FP64_UTIL);
static_assert(nvml::kGpmFp16 == NVML_GPM_METRIC_FP16_UTIL);
static_assert(nvml::kGpmPcieTx == NVML_GPM_METRIC_PCIE_TX_PER_SEC);
static_assert(nvml::kGpmNvlinkTx == NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC);
static_assert(nvml::kFieldMemoryTemperature == NVML_FI_DEV_MEMORY_TEMP);
static_assert(nvml::kFieldNvlinkDataTx == NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX);
static_assert(nvml::kFieldRecoveryAction == NVML_FI_DEV_GET_GPU_RECOVERY_ACTION);
static_assert(nvml::kMaxLinks == NVML_NVLINK_MAX_LINKS);
static_assert(nvml::kInstanceProfiles <= NVML_GPU_INSTANCE_PROFILE_COUNT);
static_assert(NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1 == 7);
static_assert(NVML_GPU_INSTANCE_PROFILE_2_SLICE_REV1 == 8);
static_assert(NVML_GPU_INSTANCE_PROFILE_1_SLICE_GFX == 10);
static_assert(NVML_GPU_INSTANCE_PROFILE_1_SLICE_NO_ME == 13);
static_assert(NVML_GPU_INSTANCE_PROFILE_1_SLICE_ALL_ME == 15);
static_assert(nvml::kComputeProfiles <= NVML_COMPUTE_INSTANCE_PROFILE_COUNT);
static_assert(NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED == 0);
static_assert(nvml::kInUse == NVML_ERROR_IN_USE);
static_assert(nvml::kReasonHwThermal == nvmlClocksThrottleReasonHwThermalSlowdown);

static_assert(std::is_same_v<decltype(&nvmlDeviceSetMigMode),
                             nvmlReturn_t (*)(nvmlDevice_t, unsigned int, nvmlReturn_t*)>);
static_assert(
    std::is_same_v<decltype(&nvmlDeviceCreateGpuInstanceWithPlacement),
                   nvmlReturn_t (*)(nvmlDevice_t, unsigned int, const nvmlGpuInstancePlacement_t*,
                                    nvmlGpuInstance_t*)>);
static_assert(
    std::is_same_v<decltype(&nvmlGpuInstanceCreateComputeInstance),
                   nvmlReturn_t (*)(nvmlGpuInstance_t, unsigned int, nvmlComputeInstance_t*)>);

int main() { std::printf("layouts agree with nvml.h (API %d)\n", NVML_API_VERSION); }
