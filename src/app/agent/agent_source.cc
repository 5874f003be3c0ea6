#include "app/agent/agent_source.h"

#include "app/files.h"
#include "edge/nvml/nvml_source.h"
#include "edge/nvml/recorded_source.h"
#include "text/escape.h"

namespace berth::app {

namespace {

constexpr std::size_t kMaxRecording = 64 << 20;

Result<OpenSource> open_simulated(Loop& loop, const std::string& path, const std::string& node) {
  BERTH_TRY(const std::string text, read_file(path));
  Result<sim::Fleet> fleet = sim::parse_fleet(text);
  if (!fleet.ok()) return std::move(fleet).error().context(path);
  Result<std::unique_ptr<sim::SimGpuSource>> made = sim::SimGpuSource::make(loop, *fleet, node);
  if (!made.ok()) return std::move(made).error().context(path);
  OpenSource out;
  out.simulated = made->get();
  out.mig = made->get();
  out.source = std::move(*made);
  return out;
}

}  // namespace

Result<OpenSource> open_source(Loop& loop, Random random, const std::string& text,
                               const std::string& node, const std::string& driver_root) {
  const std::size_t equals = text.find('=');
  const std::string kind = text.substr(0, equals);
  const std::string path = equals == std::string::npos ? "" : text.substr(equals + 1);
  if (kind == "sim" && !path.empty()) return open_simulated(loop, path, node);
  OpenSource out;
  if (kind == "recorded" && !path.empty()) {
    BERTH_TRY(const std::string bytes, read_file(path, kMaxRecording));
    Result<nvml::Recording> recording = nvml::read_recording(bytes);
    if (!recording.ok()) return std::move(recording).error().context(path);
    auto made = std::make_unique<nvml::RecordedSource>(loop, std::move(*recording));
    out.mig = made.get();
    out.source = std::move(made);
    return out;
  }
  if (text == "nvml") {
    nvml::NvmlOptions options;
    if (driver_root != "/") options.driver_root = driver_root;
    out.source = std::make_unique<nvml::NvmlSource>(loop, options, random);
    out.real = true;
    return out;
  }
  return invalid("--source: found \"" + text::terminal_safe(text) +
                 "\", want nvml, sim=FILE or recorded=FILE");
}

}  // namespace berth::app
