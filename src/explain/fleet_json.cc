#include <algorithm>

#include "explain/fleet.h"
#include "text/json_writer.h"
#include "text/rfc3339.h"

namespace berth::explain {

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
  out.key(key);
  out.begin_array();
  for (const std::string& name : names) out.value(name);
  out.end_array();
}

void write_tally(JsonWriter& out, const GpuTally& tally) {
  out.begin_object();
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
  out.end_object();
}

void write_groups(JsonWriter& out, std::string_view key, const std::vector<FleetGroup>& groups) {
  out.key(key);
  out.begin_array();
  for (const FleetGroup& group : groups) {
    out.begin_object();
    out.field("name", group.name);
    out.key("gpus");
    write_tally(out, group.tally);
    out.end_object();
  }
  out.end_array();
}

void write_gpu(JsonWriter& out, const FleetGpu& gpu) {
  out.begin_object();
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
  out.end_object();
}

void write_node(JsonWriter& out, const FleetNode& node) {
  out.begin_object();
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
  out.key("devices");
  out.begin_array();
  for (const FleetGpu& gpu : node.gpus) write_gpu(out, gpu);
  out.end_array();
  out.key("holders");
  out.begin_array();
  for (const FleetHolder& holder : node.holders) {
    out.begin_object();
    out.field("pod", holder.pod);
    out.field("milli", holder.milli);
    out.field("priority", holder.priority);
    out.key("gpus");
    out.begin_array();
    for (const int index : holder.gpus) out.value(index);
    out.end_array();
    out.end_object();
  }
  out.end_array();
  out.end_object();
}

void write_rooms(JsonWriter& out, const std::vector<FleetRoom>& rooms) {
  out.key("room");
  out.begin_array();
  for (const FleetRoom& room : rooms) {
    out.begin_object();
    out.field("model", room.model);
    out.field("free", room.free);
    out.field("largestNode", room.largest_node);
    out.field("largestRack", room.largest_rack);
    out.field("rack", room.rack);
    out.field("largestGang", room.largest_gang());
    out.key("gangs");
    out.begin_array();
    for (const FleetRoom::Gang& gang : room.gangs) {
      out.begin_object();
      out.field("gpusPerPod", gang.gpus_per_pod);
      out.field("pods", gang.pods);
      out.end_object();
    }
    out.end_array();
    out.end_object();
  }
  out.end_array();
}

void write_waiting(JsonWriter& out, const Fleet& fleet) {
  out.key("waiting");
  out.begin_array();
  for (const FleetWaiting& waiting : fleet.waiting) {
    out.begin_object();
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
    out.end_object();
  }
  out.end_array();
  out.key("reasons");
  out.begin_array();
  for (const FleetReason& reason : fleet.reasons) {
    out.begin_object();
    out.field("reason", model::name(reason.reason));
    out.field("workloads", reason.workloads);
    out.field("pods", reason.pods);
    out.field("gpusMilli", reason.gpus_milli);
    fleet_time(out, "oldest", reason.oldest_ns);
    out.end_object();
  }
  out.end_array();
}

}  // namespace

std::string fleet_json(const Fleet& fleet, int indent) {
  JsonWriter out({.indent = indent});
  out.begin_object();
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
  out.key("nodes");
  out.begin_array();
  for (const FleetNode& node : fleet.nodes) write_node(out, node);
  out.end_array();
  out.end_object();
  return std::move(out).take();
}

}  // namespace berth::explain
