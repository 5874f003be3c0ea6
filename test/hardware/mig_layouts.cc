// MIG layouts on a real GPU without the rest of the agent: the driver's source, the keeper and the
// helper process, which is this program again.
//
//   mig_layouts keep STATE_FOLDER LAYOUTS.yaml NAME   until the layout is reached or refused
//   mig_layouts agent-helper [--lock FILE]            as `berth agent-helper`
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <set>

#include "agent/mig_helper.h"
#include "agent/mig_keeper.h"
#include "app/agent/agent_helper.h"
#include "base/crash_point.h"
#include "base/run_loop.h"
#include "base/system_clock.h"
#include "edge/host/host.h"
#include "edge/nvml/nvml_source.h"

using namespace berth;  // NOLINT

namespace {

class ToStderr final : public LogSink {
 public:
  void write(LogLevel, std::string_view line) override { std::cerr << line << std::flush; }
};

class Keep {
 public:
  Keep(const std::string& state, const std::string& layouts, const std::string& layout)
      : log_(sink_, wall_, {}),
        loop_(monotonic_, wall_),
        source_(loop_, nvml::NvmlOptions{}, Random(1)),
        helper_(loop_, helper_options(state)),
        from_(monotonic_.ticks_ns()) {
    agent::MigWorld world;
    world.use = [this] { return use_; };
    world.changed = [this] { changed(); };
    world.look_again = [this] { take_inventory(); };
    world.tell = [](bool, const std::string&, const std::string&) {};
    keeper_ = std::make_unique<agent::MigKeeper>(
        loop_, helper_, agent::MigKeeperOptions{.state_dir = state, .tries = 2}, std::move(world),
        log_, metrics_);
    const auto text = host::read_text(layouts);
    auto config =
        text.ok() ? partition::read_mig_config(*text) : Result<partition::MigConfig>(text.error());
    if (config.ok()) {
      keeper_->set_config(std::make_shared<const partition::MigConfig>(std::move(*config)));
    } else {
      keeper_->set_config_problem(config.error().to_string());
    }
    keeper_->start();
    keeper_->declare(layout);
  }

  int run() {
    source_.watch([this](const model::GpuEvent&) { take_inventory(); });
    take_inventory();
    read();
    loop_.run();
    return keeper_->shown().state == "success" ? 0 : 1;
  }

 private:
  static agent::MigHelperOptions helper_options(const std::string& state) {
    agent::MigHelperOptions out;
    out.path = "/proc/self/exe";
    out.arguments = {"agent-helper", "--lock", state + "/mig-helper.lock"};
    for (const char* name : {"LD_LIBRARY_PATH", "BERTH_CRASH_AT"}) {
      if (const char* value = std::getenv(name); value != nullptr && *value != '\0') {
        out.environment.push_back(std::string(name) + "=" + value);
      }
    }
    return out;
  }
  void take_inventory() {
    source_.take_inventory([this](const Result<model::GpuInventory>& found) {
      if (!found.ok()) {
        std::cout << found.error().to_string() << std::endl;
        return;
      }
      inventory_ = *found;
      keeper_->inventory_came(*found);
      changed();
    });
  }
  void read() {
    source_.read([this](const std::vector<model::GpuReading>& readings) {
      partition::MigUse use;
      for (const model::GpuReading& reading : readings) {
        for (const model::GpuProcess& one : reading.processes) {
          use[one.mig_uuid.empty() ? reading.uuid : one.mig_uuid].push_back(
              "process " + std::to_string(one.pid));
        }
      }
      if (inventory_) use_ = std::move(use);
      keeper_->use_changed();
      loop_.after(300'000'000, [this] { read(); });
    });
  }
  void changed() {
    if (!keeper_) return;
    const agent::MigShown& shown = keeper_->shown();
    if (shown != said_) {
      said_ = shown;
      std::cout << "  +" << (monotonic_.ticks_ns() - from_) / 1'000'000 << " ms " << shown.state
                << ' ' << shown.reason << ": " << shown.text << std::endl;
    }
    if (keeper_->changing() || (shown.state != "success" && shown.state != "failed")) return;
    if (std::exchange(ending_, true)) return;
    for (const model::GpuDevice& gpu : inventory_->gpus) {
      std::cout << "  +" << (monotonic_.ticks_ns() - from_) / 1'000'000 << " ms offered: GPU "
                << gpu.index << ' ' << describe(partition::wish_of(gpu)) << std::endl;
    }
    loop_.post([this] { loop_.stop(); });
  }

  const SystemMonotonicClock monotonic_;
  const SystemWallClock wall_;
  ToStderr sink_;
  Logger log_;
  MetricsRegistry metrics_;
  RunLoop loop_;
  nvml::NvmlSource source_;
  agent::MigHelper helper_;
  const std::int64_t from_;
  std::optional<model::GpuInventory> inventory_;
  std::optional<partition::MigUse> use_;
  agent::MigShown said_;
  bool ending_ = false;
  std::unique_ptr<agent::MigKeeper> keeper_;
};

int help(const std::vector<std::string>& words) {
  app::HelperArguments arguments;
  if (words.size() == 3 && words[1] == "--lock") arguments.lock = words[2];
  const SystemWallClock wall;
  const SystemMonotonicClock monotonic;
  app::Terminal terminal{
      .in = std::cin, .out = std::cout, .err = std::cerr, .wall = wall, .monotonic = monotonic};
  return app::agent_helper_command(arguments, terminal);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (const char* at = std::getenv("BERTH_CRASH_AT"); at != nullptr && *at != '\0') {
    if (!set_crash_at(at).ok()) return 2;
  }
  if (!words.empty() && words[0] == "agent-helper") return help(words);
  if (words.size() != 4 || words[0] != "keep") return 2;
  return Keep(words[1], words[2], words[3]).run();
}
