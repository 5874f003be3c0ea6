#include "embedded/nodes/fault.h"

#include <algorithm>
#include <iterator>

#include "kinds/readers.h"
#include "text/rfc3339.h"

namespace berth::sim {

namespace {

using text::Decoder;
using text::Value;

constexpr std::pair<std::string_view, FaultKind> kFaultKinds[] = {
    {"xid", FaultKind::kXid},
    {"ecc", FaultKind::kEcc},
    {"gpu-lost", FaultKind::kGpuLost},
    {"gpu-silent", FaultKind::kGpuSilent},
    {"nvlink-down", FaultKind::kNvlinkDown},
    {"recover", FaultKind::kRecover},
    {"not-ready", FaultKind::kNotReady},
    {"ready", FaultKind::kReady},
    {"reboot", FaultKind::kReboot},
    {"slow-start", FaultKind::kSlowStart},
    {"refuse-pods", FaultKind::kRefusePods},
    {"silent", FaultKind::kSilent},
};

constexpr std::int64_t kLongest = std::int64_t{365} * 24 * 3600 * 1'000'000'000;

void read_span(const Value& v, std::int64_t& out, Decoder& d) {
  std::int64_t ns = 0;
  const std::size_t before = d.errors();
  text::read_duration_ns(v, ns, d);
  if (d.errors() != before) return;
  if (ns < 0 || ns > kLongest) return d.mismatch(v, "a duration from 0s to a year, as 30s");
  out = ns;
}

bool good_refusal(std::string_view reason) {
  return reason == "UnexpectedAdmissionError" || reason == "TopologyAffinityError";
}

void read_refusal(const Value& v, std::string& out, Decoder& d) {
  if (!v.is_string() || !good_refusal(v.string())) {
    return d.mismatch(v, "UnexpectedAdmissionError or TopologyAffinityError");
  }
  out = v.string();
}

constexpr text::Field<Fault> kFaultFields[] = {
    text::field<&Fault::at_ns, read_span>("at"),
    text::required(text::field<&Fault::node>("node")),
    text::field<&Fault::gpu, text::int_between<0, model::kMaxGpusPerNode - 1>>("gpu"),
    text::required(text::field<&Fault::kind, text::one_of<kFaultKinds>>("kind")),
    text::field<&Fault::code, text::int_between<1, 1023>>("code"),
    text::field<&Fault::for_ns, read_span>("for"),
    text::field<&Fault::delay_ns, read_span>("delay"),
    text::field<&Fault::reason, read_refusal>("reason"),
    text::field<&Fault::agent_ns, read_span>("agent"),
};

bool of_gpu(FaultKind kind) {
  return kind == FaultKind::kXid || kind == FaultKind::kEcc || kind == FaultKind::kGpuLost ||
         kind == FaultKind::kGpuSilent || kind == FaultKind::kNvlinkDown;
}

// "" when the fault makes sense on a node with so many GPUs, else what does not.
struct Nonsense {
  std::string field, found, allowed;
};
Nonsense nonsense_in(const Fault& fault, int gpus) {
  if (of_gpu(fault.kind) && gpus == 0) {
    return {"kind", std::string(name(fault.kind)), "another kind: the node has no GPUs"};
  }
  if (fault.gpu >= gpus) {
    return {"gpu", std::to_string(fault.gpu),
            gpus == 0 ? "no gpu: the node has none" : "0.." + std::to_string(gpus - 1)};
  }
  if (fault.gpu >= 0 && !of_gpu(fault.kind) && fault.kind != FaultKind::kRecover &&
      fault.kind != FaultKind::kRefusePods) {
    return {"gpu", std::to_string(fault.gpu),
            "no gpu: " + std::string(name(fault.kind)) + " is of the whole node"};
  }
  if (fault.agent_ns > 0 && fault.kind != FaultKind::kReboot) {
    return {"agent", std::to_string(fault.agent_ns / 1'000'000'000) + "s", "a reboot with it"};
  }
  if (fault.kind == FaultKind::kXid && fault.code == 0) {
    return {"code", "none", "the number of the Xid, as 79"};
  }
  return {};
}

// How many GPUs the node has; -1: there is no such node.
int gpus_of(const Fleet& fleet, std::string_view node) {
  for (const Pool& pool : fleet.pools) {
    if (!node.starts_with(pool.name + '-')) continue;
    const std::string_view digits = node.substr(pool.name.size() + 1);
    std::int64_t number = 0;
    if (!kinds::parse_int(digits, number) || number >= pool.count) continue;
    if (pool.node_name(static_cast<int>(number)) == node) return pool.gpus;
  }
  return -1;
}

void read_fault(const Value& v, const Fleet& fleet, Fault& out, Decoder& d) {
  const std::size_t before = d.errors();
  decode_object(v, kFaultFields, out, d);
  if (d.errors() != before) return;
  const int gpus = gpus_of(fleet, out.node);
  if (gpus < 0) {
    Decoder::Step step(d, "node");
    return d.error(v, kinds::quoted(out.node),
                   "a node of a pool, as " + fleet.pools.front().node_name(0));
  }
  const Nonsense wrong = nonsense_in(out, gpus);
  if (wrong.field.empty()) return;
  Decoder::Step step(d, wrong.field);
  d.error(v, wrong.found, wrong.allowed);
}

Result<std::int64_t> span_of(std::string_view key, std::string_view word) {
  const auto ns = text::parse_go_duration(word);
  if (!ns.ok() || *ns < 0 || *ns > kLongest) {
    return invalid(std::string(key) + ": found " + kinds::quoted(word) +
                   ", want a duration as 30s");
  }
  return *ns;
}

Result<int> small_number(std::string_view key, std::string_view word, int most) {
  std::int64_t number = 0;
  if (!kinds::parse_int(word, number) || number > most) {
    return invalid(std::string(key) + ": found " + kinds::quoted(word) + ", want 0.." +
                   std::to_string(most));
  }
  return static_cast<int>(number);
}

Status take_fault_word(std::string_view key, std::string_view value, Fault& out) {
  if (key == "gpu") {
    BERTH_TRY(out.gpu, small_number(key, value, model::kMaxGpusPerNode - 1));
  } else if (key == "code") {
    BERTH_TRY(out.code, small_number(key, value, 1023));
  } else if (key == "for") {
    BERTH_TRY(out.for_ns, span_of(key, value));
  } else if (key == "delay") {
    BERTH_TRY(out.delay_ns, span_of(key, value));
  } else if (key == "reason") {
    if (!good_refusal(value)) {
      return invalid("reason: found " + kinds::quoted(value) +
                     ", want UnexpectedAdmissionError or TopologyAffinityError");
    }
    out.reason = value;
  } else if (key == "agent") {
    BERTH_TRY(out.agent_ns, span_of(key, value));
  } else {
    return invalid("found " + kinds::quoted(key) + ", want gpu, code, for, delay, reason or agent");
  }
  return {};
}

struct XidRange {
  int first, last;
  XidEffect effect;
};
constexpr XidRange kXids[] = {
    {8, 8, XidEffect::kApp},        {11, 11, XidEffect::kApp},      {13, 13, XidEffect::kApp},
    {14, 14, XidEffect::kIgnore},   {25, 25, XidEffect::kApp},      {31, 32, XidEffect::kApp},
    {37, 38, XidEffect::kIgnore},   {39, 41, XidEffect::kApp},      {43, 45, XidEffect::kIgnore},
    {60, 60, XidEffect::kApp},      {63, 63, XidEffect::kIgnore},   {66, 67, XidEffect::kIgnore},
    {68, 72, XidEffect::kApp},      {75, 77, XidEffect::kApp},      {80, 80, XidEffect::kApp},
    {82, 86, XidEffect::kApp},      {88, 89, XidEffect::kApp},      {92, 93, XidEffect::kIgnore},
    {94, 94, XidEffect::kApp},      {96, 105, XidEffect::kApp},     {106, 108, XidEffect::kIgnore},
    {121, 121, XidEffect::kIgnore}, {126, 135, XidEffect::kApp},    {137, 137, XidEffect::kIgnore},
    {139, 139, XidEffect::kApp},    {141, 141, XidEffect::kIgnore}, {152, 153, XidEffect::kIgnore},
    {157, 157, XidEffect::kIgnore}, {160, 161, XidEffect::kIgnore},
};

constexpr std::pair<int, std::string_view> kXidNames[] = {
    {13, "graphics engine exception"},
    {31, "GPU memory page fault"},
    {48, "double-bit ECC error"},
    {62, "internal micro-controller halt"},
    {63, "row remapping event"},
    {64, "row remapping failure"},
    {74, "NVLink error"},
    {79, "GPU has fallen off the bus"},
    {94, "contained ECC error"},
    {95, "uncontained ECC error"},
    {109, "context switch timeout"},
    {119, "GSP RPC timeout"},
    {120, "GSP error"},
};

}  // namespace

std::string_view name(FaultKind kind) {
  for (const auto& [word, k] : kFaultKinds) {
    if (k == kind) return word;
  }
  return "unknown";
}

void read_faults(const Value& v, Fleet& fleet, Decoder& d) {
  if (!v.is_array()) return d.mismatch(v, "an array");
  if (v.size() > kMaxFleetFaults) {
    return d.error(v, std::to_string(v.size()) + " faults",
                   "at most " + std::to_string(kMaxFleetFaults));
  }
  for (std::size_t i = 0; const Value& item : v.items()) {
    Decoder::Step step(d, i++);
    Fault fault;
    read_fault(item, fleet, fault, d);
    fleet.faults.push_back(std::move(fault));
  }
  std::stable_sort(fleet.faults.begin(), fleet.faults.end(),
                   [](const Fault& a, const Fault& b) { return a.at_ns < b.at_ns; });
}

Result<Fault> parse_fault(std::string_view text, int gpus) {
  Fault fault;
  bool first = true;
  for (const std::string_view part : kinds::split(text.substr(0, 1000), " ")) {
    const std::string_view word = kinds::trim(part);
    if (word.empty()) continue;
    if (first) {
      const auto* kind = std::find_if(std::begin(kFaultKinds), std::end(kFaultKinds),
                                      [&](const auto& k) { return k.first == word; });
      if (kind == std::end(kFaultKinds)) {
        return invalid("found " + kinds::quoted(word) +
                       ", want xid, ecc, gpu-lost, gpu-silent, nvlink-down, recover, not-ready, "
                       "ready, reboot, "
                       "slow-start, refuse-pods or silent");
      }
      fault.kind = kind->second;
      first = false;
      continue;
    }
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) {
      return invalid("found " + kinds::quoted(word) + ", want name=value");
    }
    BERTH_CHECK(take_fault_word(word.substr(0, equals), word.substr(equals + 1), fault));
  }
  if (first) return invalid("found nothing, want a kind of fault, as xid");
  const Nonsense wrong = nonsense_in(fault, gpus);
  if (!wrong.field.empty()) {
    return invalid(wrong.field + ": found " + wrong.found + ", want " + wrong.allowed);
  }
  return fault;
}

XidEffect xid_effect(int code) {
  for (const XidRange& range : kXids) {
    if (code >= range.first && code <= range.last) return range.effect;
  }
  return XidEffect::kGpu;
}

std::string xid_text(int code) {
  std::string out = "Xid " + std::to_string(code);
  for (const auto& [number, text] : kXidNames) {
    if (number == code) return out + ": " + std::string(text);
  }
  return out;
}

}  // namespace berth::sim
