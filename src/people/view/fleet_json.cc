#include <algorithm>

#include "people/view/fleet.h"
#include "text/json_writer.h"
#include "text/rfc3339.h"

namespace berth::people {

namespace {

using text::JsonWriter;

void fleet_time(JsonWriter& out, std::string_view key, std::int64_t ns) {
  out.key(key);
  if (ns == 0) {
    out.null();
  } else {
    out.value(text::format_rfc3339(ns));
  }
}

void fleet_names(JsonWriter& out, std::string_view key, const std::vector<std::string>& names) {
  out.list(key, names);
}

void write_tally(JsonWriter& out, const GpuTally& tally) {
  out.object([&] {
    out.field("nodes", tally.nodes);
    out.field("discovered", tally.discovered());
    out.field("used", tally.used);
    out.field("free", tally.free);
    out.field("unhealthy", tally.unhealthy);
    out.field("reserved", tally.reserved);
    out.field("unknown", tally.unknown);
    out.field("unhealthyHeld", tally.unhealthy_held);
    out.field("usedMilli", tally.used_milli);
    out.field("freeMilli", tally.free_milli);
    out.field("migSlots", tally.mig_slots);
    out.field("migUsed", tally.mig_used);
  });
}

void write_groups(JsonWriter& out, std::string_view key, const std::vector<FleetGroup>& groups) {
  out.array(key, [&] {
    for (const FleetGroup& group : groups) {
      out.object([&] {
        out.field("name", group.name);
        out.key("gpus");
        write_tally(out, group.tally);
      });
    }
  });
}

void write_gpu(JsonWriter& out, const FleetGpu& gpu) {
  out.object([&] {
    out.field("index", gpu.index);
    out.field("model", gpu.model);
    out.field("uuid", gpu.uuid);
    out.field("state", name(gpu.state));
    out.field("why", gpu.why);
    out.field("usedMilli", gpu.used_milli);
    out.field("nvlinkClique", gpu.nvlink_clique);
    out.field("migSlots", gpu.mig_slots);
    out.field("migUsed", gpu.mig_used);
    fleet_names(out, "pods", gpu.pods);
    const auto measured = [&out](std::string_view key, int value) {
      out.key(key);
      if (value < 0) {
        out.null();
      } else {
        out.value(value);
      }
    };
    measured("busyPercent", gpu.busy_percent);
    measured("memoryUsedMib", gpu.memory_used_mib);
    measured("memoryMib", gpu.memory_mib);
  });
}

void write_node(JsonWriter& out, const FleetNode& node) {
  out.object([&] {
    out.field("name", node.name);
    out.field("model", node.model);
    out.field("pool", node.pool);
    out.field("rack", node.rack);
    out.field("ready", node.ready);
    out.field("cordoned", node.cordoned);
    fleet_names(out, "taints", node.taints);
    out.field("sharesPerGpu", node.shares_per_gpu);
    out.field("assumed", node.assumed);
    out.key("gpus");
    write_tally(out, node.tally);
    out.array("devices", [&] {
      for (const FleetGpu& gpu : node.gpus) write_gpu(out, gpu);
    });
    out.array("holders", [&] {
      for (const FleetHolder& holder : node.holders) {
        out.object([&] {
          out.field("pod", holder.pod);
          out.field("milli", holder.milli);
          out.field("priority", holder.priority);
          out.array("gpus", [&] {
            for (const int index : holder.gpus) out.value(index);
          });
        });
      }
    });
  });
}

void write_rooms(JsonWriter& out, const std::vector<FleetRoom>& rooms) {
  out.array("room", [&] {
    for (const FleetRoom& room : rooms) {
      out.object([&] {
        out.field("model", room.model);
        out.field("free", room.free);
        out.field("largestNode", room.largest_node);
        out.field("largestRack", room.largest_rack);
        out.field("rack", room.rack);
        out.field("largestGang", room.largest_gang());
        out.array("gangs", [&] {
          for (const FleetRoom::Gang& gang : room.gangs) {
            out.object([&] {
              out.field("gpusPerPod", gang.gpus_per_pod);
              out.field("pods", gang.pods);
            });
          }
        });
      });
    }
  });
}

void write_waiting(JsonWriter& out, const Fleet& fleet) {
  out.array("waiting", [&] {
    for (const FleetWaiting& waiting : fleet.waiting) {
      out.object([&] {
        out.field("workload", waiting.workload);
        out.field("queue", waiting.queue);
        out.field("reason", model::name(waiting.reason));
        out.field("message", waiting.message);
        out.field("never", waiting.never);
        out.field("pods", waiting.pods);
        out.field("gpusMilli", waiting.gpus_milli);
        out.field("priority", waiting.priority);
        out.field("position", waiting.position);
        fleet_time(out, "since", waiting.since_ns);
      });
    }
  });
  out.array("reasons", [&] {
    for (const FleetReason& reason : fleet.reasons) {
      out.object([&] {
        out.field("reason", model::name(reason.reason));
        out.field("workloads", reason.workloads);
        out.field("pods", reason.pods);
        out.field("gpusMilli", reason.gpus_milli);
        fleet_time(out, "oldest", reason.oldest_ns);
      });
    }
  });
}

}  // namespace

std::string fleet_json(const Fleet& fleet, int indent) {
  JsonWriter out({.indent = indent});
  out.object([&] {
    out.field("version", "berth.dev/fleet/v1");
    fleet_time(out, "time", fleet.now_ns);
    out.key("gpus");
    write_tally(out, fleet.total);
    out.field("runningPods", fleet.running_pods);
    out.field("gpuPods", fleet.gpu_pods);
    out.field("rackKey", fleet.rack_key);
    out.field("poolKey", fleet.pool_key);
    write_groups(out, "models", fleet.models);
    write_groups(out, "pools", fleet.pools);
    write_groups(out, "racks", fleet.racks);
    write_rooms(out, fleet.rooms);
    out.field("startable", fleet.startable);
    write_waiting(out, fleet);
    out.array("nodes", [&] {
      for (const FleetNode& node : fleet.nodes) write_node(out, node);
    });
  });
  return std::move(out).take();
}

}  // namespace berth::people
