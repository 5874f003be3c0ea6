// The part of NVIDIA's management library (NVML) that berth calls, in declarations of our own, and
// the loading of it.
//
// Nothing is linked: the library belongs to the driver and is found at run time. Functions that a
// driver lacks are null and count as "not supported" (see call()), so that an old driver costs what
// it does not know and nothing else. Layouts are those of NVML's C interface; versioned structs
// carry their size and version in the first word. Any thread may call; any call may hang.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::nvml {

// ---- return codes ----
using Return = unsigned int;
inline constexpr Return kSuccess = 0;
inline constexpr Return kUninitialized = 1;
inline constexpr Return kInvalidArgument = 2;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kNoPermission = 4;
inline constexpr Return kNotFound = 6;
inline constexpr Return kInsufficientSize = 7;
inline constexpr Return kDriverNotLoaded = 9;
inline constexpr Return kTimeout = 10;
inline constexpr Return kFunctionNotFound = 13;
inline constexpr Return kGpuLost = 15;
inline constexpr Return kResetRequired = 16;
inline constexpr Return kVersionMismatch = 18;
inline constexpr Return kInUse = 19;
inline constexpr Return kUnknownError = 999;

// What a code means, for people.
std::string_view describe_return(Return code);

// ---- handles ----
struct DeviceTag;
struct EventSetTag;
struct GpuInstanceTag;
struct ComputeInstanceTag;
struct GpmSampleTag;
using Device = DeviceTag*;
using EventSet = EventSetTag*;
using GpuInstance = GpuInstanceTag*;
using ComputeInstance = ComputeInstanceTag*;
using GpmSample = GpmSampleTag*;

// ---- structs ----
template <class T>
constexpr unsigned int struct_version(unsigned int number) {
  return static_cast<unsigned int>(sizeof(T)) | number << 24;
}

struct PciInfo {
  char bus_id_legacy[16];
  unsigned int domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
struct Utilization {
  unsigned int gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};
struct MemoryV2 {
  unsigned int version;
  unsigned long long total, reserved, free, used;
};
struct ProcessInfo {
  unsigned int pid;
  unsigned long long used_gpu_memory;  // kNoValue: not known
  unsigned int gpu_instance, compute_instance;
};
struct ProcessUtilization {
  unsigned int pid;
  unsigned long long time_stamp;
  unsigned int sm, memory, encoder, decoder;
};
struct DeviceAttributes {
  unsigned int multiprocessors, copy_engines, decoders, encoders, jpegs, ofas, gpu_slices,
      compute_slices;
  unsigned long long memory_mib;
};
union FieldNumber {
  double d;
  unsigned int ui;
  unsigned long ul;
  unsigned long long ull;
  long long sll;
  int si;
  unsigned short us;
};
enum class ValueType : unsigned int { kDouble, kUint, kUlong, kUlonglong, kLonglong, kInt, kShort };
struct FieldValue {
  unsigned int field, scope;
  long long time_stamp, latency_us;
  ValueType type;
  Return result;
  FieldNumber value;
};
struct EventData {
  Device device;
  unsigned long long type, data;
  unsigned int gpu_instance, compute_instance;
};
struct Placement {
  unsigned int start, size;
};
struct GpuInstanceInfo {
  Device device;
  unsigned int id, profile;
  Placement placement;
};
struct GpuInstanceProfile {
  unsigned int id, p2p, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpegs,
      ofas;
  unsigned long long memory_mib;
};
struct ComputeInstanceProfile {
  unsigned int id, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpegs,
      ofas;
};
struct ComputeInstanceInfo {
  Device device;
  GpuInstance gpu_instance;
  unsigned int id, profile;
  Placement placement;
};
struct FabricInfo {
  unsigned char cluster_uuid[16];
  Return status;
  unsigned int clique;
  unsigned char state;
};
struct FabricInfoV2 {
  unsigned int version;
  unsigned char cluster_uuid[16];
  Return status;
  unsigned int clique;
  unsigned char state;
  unsigned int health_mask;
};
struct GpmMetric {
  unsigned int id;
  Return result;
  double value;
  struct {
    char *short_name, *long_name, *unit;
  } info;
};
// The library writes as many metrics as are asked for; the array of newer versions is longer.
struct GpmMetrics {
  unsigned int version, count;
  GpmSample first, second;
  GpmMetric metrics[98];
};
struct GpmSupport {
  unsigned int version, supported;
};

inline constexpr unsigned long long kNoValue = ~0ULL;
inline constexpr unsigned int kNoInstance = ~0U;
inline constexpr unsigned int kAllLinks = ~0U;  // scope of the NVLink counters
inline constexpr unsigned int kMaxLinks = 18;

// ---- constants ----
inline constexpr int kClockSm = 1, kClockMemory = 2;
inline constexpr int kTemperatureGpu = 0;
inline constexpr int kEccCorrected = 0, kEccUncorrected = 1;
inline constexpr int kEccVolatile = 0, kEccAggregate = 1;
inline constexpr unsigned int kFieldMemoryTemperature = 82;
inline constexpr unsigned int kFieldNvlinkDataTx = 138, kFieldNvlinkDataRx = 139;  // KiB
inline constexpr unsigned int kFieldRecoveryAction = 230;
inline constexpr unsigned int kRemoteGpu = 0, kRemoteSwitch = 2;
inline constexpr unsigned char kFabricCompleted = 3;
inline constexpr unsigned long long kReasonHwThermal = 0x40;

inline constexpr unsigned long long kEventEccDouble = 0x2, kEventXid = 0x8, kEventMig = 0x100,
                                    kEventEccStorm = 0x200, kEventRemapped = 0x400,
                                    kEventRemapFailed = 0x800, kEventPoison = 0x1000,
                                    kEventFatalPoison = 0x2000, kEventUnavailable = 0x4000,
                                    kEventRecovery = 0x8000;

inline constexpr unsigned int kGpmGraphics = 1, kGpmSm = 2, kGpmOccupancy = 3, kGpmTensor = 5,
                              kGpmDram = 10, kGpmFp64 = 11, kGpmFp32 = 12, kGpmFp16 = 13,
                              kGpmPcieTx = 20, kGpmPcieRx = 21, kGpmNvlinkRx = 60,
                              kGpmNvlinkTx = 61;

// Profiles of GPU instances by the number they are asked for with; the id that instances carry is
// another one.
inline constexpr unsigned int kInstanceProfiles = 17;
inline constexpr unsigned int kComputeProfiles = 8;  // the same of compute instances

// ---- functions ----
// Each is null where the library has no such symbol.
struct Api {
  Return (*init)() = nullptr;
  Return (*driver_version)(char*, unsigned int) = nullptr;
  Return (*cuda_version)(int*) = nullptr;
  Return (*device_count)(unsigned int*) = nullptr;
  Return (*device_by_index)(unsigned int, Device*) = nullptr;

  Return (*uuid)(Device, char*, unsigned int) = nullptr;
  Return (*name)(Device, char*, unsigned int) = nullptr;
  Return (*minor)(Device, unsigned int*) = nullptr;
  Return (*pci_info)(Device, PciInfo*) = nullptr;
  Return (*compute_capability)(Device, int*, int*) = nullptr;
  Return (*memory)(Device, Memory*) = nullptr;
  Return (*memory_v2)(Device, MemoryV2*) = nullptr;
  Return (*link_state)(Device, unsigned int, unsigned int*) = nullptr;
  Return (*link_remote_pci)(Device, unsigned int, PciInfo*) = nullptr;
  Return (*link_remote_type)(Device, unsigned int, unsigned int*) = nullptr;
  Return (*fabric)(Device, FabricInfo*) = nullptr;
  Return (*fabric_v)(Device, FabricInfoV2*) = nullptr;

  Return (*mig_mode)(Device, unsigned int*, unsigned int*) = nullptr;
  Return (*mig_count)(Device, unsigned int*) = nullptr;
  Return (*mig_by_index)(Device, unsigned int, Device*) = nullptr;
  Return (*gpu_instance_id)(Device, unsigned int*) = nullptr;
  Return (*compute_instance_id)(Device, unsigned int*) = nullptr;
  Return (*attributes)(Device, DeviceAttributes*) = nullptr;
  Return (*gpu_instance_by_id)(Device, unsigned int, GpuInstance*) = nullptr;
  Return (*gpu_instance_info)(GpuInstance, GpuInstanceInfo*) = nullptr;
  Return (*gpu_instance_profile)(Device, unsigned int, GpuInstanceProfile*) = nullptr;

  // What changes instances: for the helper process alone (edge/nvml/mig_control.h).
  Return (*set_mig_mode)(Device, unsigned int, Return*) = nullptr;
  Return (*possible_placements)(Device, unsigned int, Placement*, unsigned int*) = nullptr;
  Return (*create_gpu_instance)(Device, unsigned int, const Placement*, GpuInstance*) = nullptr;
  Return (*destroy_gpu_instance)(GpuInstance) = nullptr;
  Return (*gpu_instances)(Device, unsigned int, GpuInstance*, unsigned int*) = nullptr;
  Return (*compute_profile)(GpuInstance, unsigned int, unsigned int,
                            ComputeInstanceProfile*) = nullptr;
  Return (*create_compute_instance)(GpuInstance, unsigned int, ComputeInstance*) = nullptr;
  Return (*destroy_compute_instance)(ComputeInstance) = nullptr;
  Return (*compute_instances)(GpuInstance, unsigned int, ComputeInstance*, unsigned int*) = nullptr;
  Return (*compute_instance_info)(ComputeInstance, ComputeInstanceInfo*) = nullptr;

  Return (*clock)(Device, int, unsigned int*) = nullptr;
  Return (*temperature)(Device, int, unsigned int*) = nullptr;
  Return (*power)(Device, unsigned int*) = nullptr;
  Return (*energy)(Device, unsigned long long*) = nullptr;
  Return (*utilization)(Device, Utilization*) = nullptr;
  Return (*encoder)(Device, unsigned int*, unsigned int*) = nullptr;
  Return (*decoder)(Device, unsigned int*, unsigned int*) = nullptr;
  Return (*pcie_replays)(Device, unsigned int*) = nullptr;
  Return (*remapped_rows)(Device, unsigned int*, unsigned int*, unsigned int*,
                          unsigned int*) = nullptr;
  Return (*ecc_errors)(Device, int, int, unsigned long long*) = nullptr;
  Return (*clock_reasons)(Device, unsigned long long*) = nullptr;
  Return (*fields)(Device, int, FieldValue*) = nullptr;
  Return (*compute_processes)(Device, unsigned int*, ProcessInfo*) = nullptr;
  Return (*graphics_processes)(Device, unsigned int*, ProcessInfo*) = nullptr;
  Return (*process_utilization)(Device, ProcessUtilization*, unsigned int*,
                                unsigned long long) = nullptr;

  Return (*gpm_support)(Device, GpmSupport*) = nullptr;
  Return (*gpm_alloc)(GpmSample*) = nullptr;
  Return (*gpm_free)(GpmSample) = nullptr;
  Return (*gpm_sample)(Device, GpmSample) = nullptr;
  Return (*gpm_mig_sample)(Device, unsigned int, GpmSample) = nullptr;
  Return (*gpm_metrics)(GpmMetrics*) = nullptr;

  Return (*event_set_create)(EventSet*) = nullptr;
  Return (*event_set_free)(EventSet) = nullptr;
  Return (*supported_events)(Device, unsigned long long*) = nullptr;
  Return (*register_events)(Device, unsigned long long, EventSet) = nullptr;
  Return (*event_wait)(EventSet, EventData*, unsigned int) = nullptr;
};

// The call, or "not supported" where the library lacks the function.
template <class... Wanted, class... Given>
Return call(Return (*function)(Wanted...), Given... given) {
  return function == nullptr ? kFunctionNotFound : function(given...);
}

// "nvmlInit: driver not loaded (code 9)".
std::string failure(std::string_view what, Return code);

// Finds and opens the library: below driver_root where one is given, in the places that
// distributions use; otherwise as the loader finds it. `library` may be a path. It stays open for
// the life of the process: the driver's threads may still be in it. Blocking.
Result<std::shared_ptr<const Api>> load_nvml(const std::string& library,
                                             const std::string& driver_root);

}  // namespace berth::nvml
