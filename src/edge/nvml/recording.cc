#include "edge/nvml/recording.h"

#include <algorithm>

#include "edge/nvml/recording_fields.h"
#include "text/json_writer.h"
#include "text/rfc3339.h"

namespace berth::nvml {

namespace {

using text::JsonWriter;

constexpr std::int64_t kMillisecond = 1'000'000;

// What is not known, none or zero is left out; the reader's defaults are the same.
void put_word(JsonWriter& out, std::string_view key, const std::string& word) {
  if (!word.empty()) out.field(key, word);
}
template <class T>
void put_unless(JsonWriter& out, std::string_view key, T value, T usual) {
  if (value != usual) out.field(key, value);
}

void write_mig(const model::MigInstance& mig, JsonWriter& out) {
  out.object([&] {
    out.field("uuid", mig.uuid);
    out.field("profile", mig.profile);
    out.field("gpuInstance", mig.gpu_instance);
    out.field("computeInstance", mig.compute_instance);
    put_unless(out, "start", mig.start, -1);
    put_unless(out, "slots", mig.slots, 0);
    out.field("memoryMiB", mig.memory_mib);
    out.field("multiprocessors", mig.multiprocessors);
    out.field("gpuSlices", mig.gpu_slices);
    out.field("computeSlices", mig.compute_slices);
    out.object("engines", [&] {
      put_unless(out, "copy", mig.engines.copy, 0);
      put_unless(out, "decoder", mig.engines.decoder, 0);
      put_unless(out, "encoder", mig.engines.encoder, 0);
      put_unless(out, "jpeg", mig.engines.jpeg, 0);
      put_unless(out, "ofa", mig.engines.ofa, 0);
    });
  });
}

void write_gpu(const model::GpuDevice& gpu, JsonWriter& out) {
  out.object([&] {
    out.field("index", gpu.index);
    out.field("minor", gpu.minor);
    out.field("uuid", gpu.uuid);
    out.field("name", gpu.name);
    put_word(out, "pciBusId", gpu.pci_bus_id);
    out.field("pciDevice", gpu.pci_device);
    out.field("memoryMiB", gpu.memory_mib);
    out.field("computeMajor", gpu.compute_major);
    out.field("computeMinor", gpu.compute_minor);
    put_unless(out, "numa", gpu.numa, -1);
    put_unless(out, "pcieSwitch", gpu.pcie_switch, -1);
    if (!gpu.nvlinks.empty()) {
      out.array("nvlinks", [&] {
        for (const int links : gpu.nvlinks) out.value(links);
      });
    }
    put_word(out, "fabricCluster", gpu.fabric_cluster);
    put_unless(out, "fabricClique", gpu.fabric_clique, -1);
    put_unless(out, "migCapable", gpu.mig_capable, false);
    put_unless(out, "migEnabled", gpu.mig_enabled, false);
    if (!gpu.mig.empty()) {
      out.array("mig", [&] {
        for (const model::MigInstance& mig : gpu.mig) write_mig(mig, out);
      });
    }
  });
}

void write_host(const model::HostFacts& host, JsonWriter& out) {
  out.object([&] {
    put_word(out, "machine", host.machine);
    put_word(out, "kernel", host.kernel);
    out.object("osRelease", [&] {
      for (const auto& [key, value] : host.os_release) out.field(key, value);
    });
    out.array("pci", [&] {
      for (const model::PciDevice& device : host.pci) {
        out.object([&] {
          out.field("busId", device.bus_id);
          out.field("class", device.class_code);
          out.field("vendor", device.vendor);
          out.field("device", device.device);
          put_unless<int>(out, "subsystemVendor", device.subsystem_vendor, 0);
          put_unless<int>(out, "subsystemDevice", device.subsystem_device, 0);
          put_unless(out, "numa", device.numa, -1);
          put_unless(out, "sriov", device.sriov, false);
        });
      }
    });
    out.array("nics", [&] {
      for (const model::NicDevice& nic : host.nics) {
        out.object([&] {
          out.field("name", nic.name);
          put_word(out, "pciBusId", nic.pci_bus_id);
          put_word(out, "linkLayer", nic.link_layer);
          put_unless(out, "numa", nic.numa, -1);
          put_unless(out, "pcieSwitch", nic.pcie_switch, -1);
        });
      }
    });
  });
}

void write_counters(const Counters& counters, JsonWriter& out) {
  out.object([&] {
    for (const RealField& field : kRealFields) {
      if (const auto& value = counters.*field.member) out.field(field.name, *value);
    }
    for (const CountField& field : kCountFields) {
      if (const auto& value = counters.*field.member) out.field(field.name, *value);
    }
  });
}

void write_condition(const model::GpuCondition& condition, JsonWriter& out) {
  out.object([&] {
    out.field("recovery", name(condition.recovery));
    put_unless(out, "remapPending", condition.remap_pending, false);
    put_unless(out, "remapFailed", condition.remap_failed, false);
    put_unless(out, "nvlinksUp", condition.nvlinks_up, 0);
    put_unless(out, "nvlinksDown", condition.nvlinks_down, 0);
    put_unless(out, "fabricTrouble", condition.fabric_trouble, false);
    put_unless(out, "thermalSlowdown", condition.thermal_slowdown, false);
  });
}

void write_reading(const model::GpuReading& reading, JsonWriter& out) {
  out.object([&] {
    out.field("uuid", reading.uuid);
    for (const auto& [word, answer] : kAnswerWords) {
      if (answer == reading.answer) out.field("answer", word);
    }
    put_word(out, "error", reading.error);
    out.key("condition");
    write_condition(reading.condition, out);
    out.key("counters");
    write_counters(reading.counters, out);
    if (!reading.mig.empty()) {
      out.array("mig", [&] {
        for (const auto& [uuid, counters] : reading.mig) {
          out.object([&] {
            out.field("uuid", uuid);
            out.key("counters");
            write_counters(counters, out);
          });
        }
      });
    }
    if (!reading.processes.empty()) {
      out.array("processes", [&] {
        for (const model::GpuProcess& process : reading.processes) {
          out.object([&] {
            out.field("pid", process.pid);
            out.field("memoryMiB", process.memory_mib);
            if (process.utilization) out.field("utilization", *process.utilization);
            put_word(out, "migUuid", process.mig_uuid);
          });
        }
      });
    }
  });
}

void write_event(const Recording::Event& at, JsonWriter& out) {
  const model::GpuEvent& event = at.event;
  out.object([&] {
    out.field("atMs", at.at_ns / kMillisecond);
    out.field("kind", name(event.kind));
    put_word(out, "uuid", event.uuid);
    put_word(out, "pciBusId", event.pci_bus_id);
    put_unless(out, "code", event.code, 0);
    put_unless(out, "gpuInstance", event.gpu_instance, -1);
    put_unless(out, "computeInstance", event.compute_instance, -1);
    put_unless(out, "pid", event.pid, 0);
    put_word(out, "detail", event.detail);
    put_unless(out, "fromKernelLog", event.from_kernel_log, false);
  });
}

}  // namespace

std::string write_recording(const Recording& recording) {
  JsonWriter out({.indent = 1});
  out.object([&] {
    out.field("version", 1);
    out.field("started", text::format_rfc3339(recording.started_ns));
    out.key("host");
    write_host(recording.host, out);
    out.object("inventory", [&] {
      out.field("driverVersion", recording.inventory.driver_version);
      out.field("cudaMajor", recording.inventory.cuda_major);
      out.field("cudaMinor", recording.inventory.cuda_minor);
      out.array("gpus", [&] {
        for (const model::GpuDevice& gpu : recording.inventory.gpus) write_gpu(gpu, out);
      });
    });
    out.array("readings", [&] {
      for (const Recording::Sample& sample : recording.samples) {
        out.object([&] {
          out.field("atMs", sample.at_ns / kMillisecond);
          out.array("gpus", [&] {
            for (const model::GpuReading& reading : sample.gpus) write_reading(reading, out);
          });
        });
      }
    });
    out.array("events", [&] {
      for (const Recording::Event& event : recording.events) write_event(event, out);
    });
  });
  return std::move(out).take() + "\n";
}

}  // namespace berth::nvml
