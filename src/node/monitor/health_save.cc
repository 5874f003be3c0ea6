// HealthBook as JSON, for the next process.
#include <utility>

#include "node/monitor/health.h"
#include "node/monitor/health_rules.h"
#include "text/decode.h"
#include "text/json.h"
#include "text/json_writer.h"

namespace berth::monitor {

constexpr std::int64_t kHealthVersion = 1;
constexpr std::size_t kMaxSavedBytes = 4 * 1024 * 1024, kMaxSavedGpus = 1024, kMaxSavedList = 64;
constexpr std::size_t kMaxSavedText = 2048;

constexpr std::pair<std::string_view, Severity> kSavedSeverities[] = {
    {"degraded", Severity::kDegraded}, {"fatal", Severity::kFatal}};
constexpr std::pair<std::string_view, Probe> kSavedProbes[] = {
    {"driver-answers", Probe::kAnswers},
    {"no-recovery-action", Probe::kNoRecovery},
    {"no-pending-remap", Probe::kNoPendingRemap},
    {"links-up", Probe::kLinksUp},
    {"no-thermal-slowdown", Probe::kCool},
    {"gpu-reset", Probe::kReset},
    {"operator", Probe::kOperator}};

struct SavedGpu {
  HealthBook::Gpu gpu;
  std::vector<HealthBook::Cause> causes;
};
struct SavedHealth {
  std::int64_t version = 0;
  std::string boot;
  std::vector<SavedGpu> gpus;
};

static void read_short(const text::Value& v, std::string& out, text::Decoder& d) {
  if (!v.is_string() || v.string().size() > kMaxSavedText) {
    return d.mismatch(v, "a string of at most 2048 bytes");
  }
  out = v.string();
}

constexpr text::Field<HealthBook::Cause> kCauseFields[] = {
    text::required(text::field<&HealthBook::Cause::code, read_short>("code")),
    text::required(
        text::field<&HealthBook::Cause::severity, text::one_of<kSavedSeverities>>("severity")),
    text::required(text::field<&HealthBook::Cause::probe, text::one_of<kSavedProbes>>("probe")),
    text::required(text::field<&HealthBook::Cause::action, read_short>("action")),
    text::required(text::field<&HealthBook::Cause::text, read_short>("text")),
    text::required(text::field<&HealthBook::Cause::since_ns>("since")),
    text::required(text::field<&HealthBook::Cause::clean, text::int_between<0, 1000000>>("clean")),
    text::required(text::field<&HealthBook::Cause::advised>("advised")),
    text::required(text::field<&HealthBook::Cause::reset_seen>("reset")),
    text::required(text::field<&HealthBook::Cause::driver_silent>("silent")),
};
void decode(const text::Value& v, HealthBook::Cause& out, text::Decoder& d) {
  decode_object(v, kCauseFields, out, d);
}

template <auto MemberPtr, auto Reader = text::internal::DefaultReader{}>
constexpr auto gpu_field(std::string_view name) {
  return text::required(
      text::custom<SavedGpu>(name, [](const text::Value& v, SavedGpu& out, text::Decoder& d) {
        Reader(v, out.gpu.*MemberPtr, d);
      }));
}
constexpr text::Field<SavedGpu> kSavedGpuFields[] = {
    gpu_field<&HealthBook::Gpu::uuid, read_short>("uuid"),
    gpu_field<&HealthBook::Gpu::pci_bus_id, read_short>("pci"),
    gpu_field<&HealthBook::Gpu::index, text::int_between<0, 100000>>("index"),
    gpu_field<&HealthBook::Gpu::mig_enabled>("mig"),
    gpu_field<&HealthBook::Gpu::gone_since_ns>("goneSince"),
    gpu_field<&HealthBook::Gpu::links, text::int_between<0, 100000>>("links"),
    gpu_field<&HealthBook::Gpu::link_faults, text::int_between<0, 1000000000>>("linkFaults"),
    gpu_field<&HealthBook::Gpu::flaps>("flaps"),
    text::required(text::field<&SavedGpu::causes>("causes")),
};
void decode(const text::Value& v, SavedGpu& out, text::Decoder& d) {
  decode_object(v, kSavedGpuFields, out, d);
}

constexpr text::Field<SavedHealth> kSavedFields[] = {
    text::required(text::field<&SavedHealth::version>("version")),
    text::required(text::field<&SavedHealth::boot, read_short>("boot")),
    text::required(text::field<&SavedHealth::gpus>("gpus")),
};
void decode(const text::Value& v, SavedHealth& out, text::Decoder& d) {
  decode_object(v, kSavedFields, out, d);
}

std::string HealthBook::save() const {
  text::JsonWriter out;
  out.object([&] {
    out.field("version", kHealthVersion);
    out.field("boot", boot_);
    out.array("gpus", [&] {
      for (const auto& [uuid, gpu] : gpus_) {
        out.object([&] {
          out.field("uuid", uuid);
          out.field("pci", gpu.pci_bus_id);
          out.field("index", gpu.index);
          out.field("mig", gpu.mig_enabled);
          out.field("goneSince", gpu.gone_since_ns);
          out.field("links", gpu.links);
          out.field("linkFaults", gpu.link_faults);
          out.array("flaps", [&] {
            for (std::int64_t at : gpu.flaps) out.value(at);
          });
          out.array("causes", [&] {
            for (const auto& [code, cause] : gpu.causes) {
              out.object([&] {
                out.field("code", code);
                out.field("severity", name(cause.severity));
                out.field("probe", name(cause.probe));
                out.field("action", cause.action);
                out.field("text", cause.text);
                out.field("since", cause.since_ns);
                out.field("clean", cause.clean);
                out.field("advised", cause.advised);
                out.field("reset", cause.reset_seen);
                out.field("silent", cause.driver_silent);
              });
            }
          });
        });
      }
    });
  });
  return std::move(out).take();
}

Status HealthBook::restore(std::string_view bytes) {
  BERTH_TRY(auto document, text::parse_json(bytes, {.limits = {.max_bytes = kMaxSavedBytes}}));
  if (const text::Value* version = document.root().find("version");
      version != nullptr && version->as_int64() != kHealthVersion) {
    return invalid("version: found " + text::describe(*version) + ", want 1");
  }
  text::Decoder decoder;
  SavedHealth saved;
  decode(document.root(), saved, decoder);
  if (!decoder.ok()) return decoder.to_error();
  if (decoder.warnings() > 0) return invalid(decoder.issues().front().message());
  if (saved.gpus.size() > kMaxSavedGpus) return invalid("gpus: found more than 1024");
  Gpus restored;
  for (std::size_t i = 0; auto& one : saved.gpus) {
    const std::string where = "gpus[" + std::to_string(i++) + "]";
    if (one.gpu.uuid.empty()) return invalid(where + ".uuid: found \"\", want a UUID");
    if (one.gpu.flaps.size() > kMaxSavedList || one.causes.size() > kMaxSavedList) {
      return invalid(where + ": found more than 64 flaps or causes");
    }
    for (auto& cause : one.causes) {
      std::string code = cause.code;
      if (code.empty() || !one.gpu.causes.emplace(std::move(code), std::move(cause)).second) {
        return invalid(where + ".causes: codes must be there and differ");
      }
    }
    std::string uuid = one.gpu.uuid;
    settle(one.gpu);
    if (!restored.emplace(std::move(uuid), std::move(one.gpu)).second) {
      return invalid(where + ".uuid: found twice");
    }
  }
  for (auto& [uuid, gpu] : gpus_) restored.try_emplace(uuid, gpu);
  gpus_ = std::move(restored);
  const std::string boot = std::exchange(boot_, saved.boot);
  set_boot(boot);
  return {};
}

}  // namespace berth::monitor
