#include "node/monitor/exporter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/utf8.h"

namespace berth::monitor {
namespace {

using model::GpuAnswer;
using model::GpuReading;

// ---- a strict reader of the text format ------------------------------------------------------

using LabelMap = std::map<std::string, std::string>;
struct Series {
  std::string family;
  LabelMap labels;
  std::string value;
};

// What Prometheus' own parser accepts, and a little less: families in one piece with HELP and TYPE
// once before their samples, no series twice. failure says what is wrong and where.
class StrictPage {
 public:
  explicit StrictPage(std::string_view text) {
    if (!is_utf8(text)) fail("not UTF-8");
    if (text.empty() || text.back() != '\n') fail("no newline at the end");
    while (!text.empty() && failure.empty()) {
      ++line_;
      std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(line.size() + 1);
      if (line.starts_with("# ")) {
        comment(line.substr(2));
      } else {
        sample(line);
      }
    }
  }

  std::string failure;
  std::vector<Series> series;
  std::map<std::string, std::string> types, helps;

  std::vector<Series> of(std::string_view family, const LabelMap& with = {}) const {
    std::vector<Series> out;
    for (const Series& one : series) {
      bool all = one.family == family;
      for (const auto& [label, value] : with) {
        auto found = one.labels.find(label);
        all = all && found != one.labels.end() && found->second == value;
      }
      if (all) out.push_back(one);
    }
    return out;
  }
  // The value of the one series of this family with these labels.
  std::string value(std::string_view family, const LabelMap& with = {}) const {
    auto found = of(family, with);
    return found.size() == 1 ? found[0].value : std::to_string(found.size()) + " series";
  }

 private:
  void fail(const std::string& why) {
    if (failure.empty()) failure = "line " + std::to_string(line_) + ": " + why;
  }
  static bool is_name(std::string_view text, bool colons) {
    if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) != 0) return false;
    return std::all_of(text.begin(), text.end(), [&](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (colons && c == ':');
    });
  }
  void comment(std::string_view line) {
    std::string_view kind = line.substr(0, 5);
    if (kind != "HELP " && kind != "TYPE ") return fail("a comment that is neither HELP nor TYPE");
    line.remove_prefix(5);
    std::string family(line.substr(0, line.find(' ')));
    if (!is_name(family, true) || line.size() <= family.size()) return fail("bad name");
    std::string rest(line.substr(family.size() + 1));
    auto& known = kind == "HELP " ? helps : types;
    if (!known.emplace(family, rest).second) return fail(family + " has it twice");
    if (kind == "HELP ") {
      current_ = family;
      for (std::size_t i = 0; i < rest.size(); ++i) {
        if (rest[i] == '\\' && (++i == rest.size() || (rest[i] != '\\' && rest[i] != 'n'))) {
          return fail("bad escape in HELP");
        }
      }
    } else {
      if (current_ != family) return fail("TYPE apart from HELP");
      if (rest != "gauge" && rest != "counter") return fail("type " + rest);
    }
  }
  void sample(std::string_view line) {
    Series one;
    one.family = line.substr(0, line.find_first_of("{ "));
    line.remove_prefix(one.family.size());
    if (!is_name(one.family, true)) return fail("bad name " + one.family);
    if (one.family != current_ || !types.contains(one.family)) {
      return fail(one.family + " outside of its family");
    }
    if (line.starts_with("{") && !labels(line, one.labels)) return fail("bad labels");
    if (!line.starts_with(" ")) return fail("no blank before the value");
    one.value = line.substr(1);
    if (one.value != "NaN" && one.value != "+Inf" && one.value != "-Inf") {
      double number = 0;
      auto [end, error] =
          std::from_chars(one.value.data(), one.value.data() + one.value.size(), number);
      if (error != std::errc() || end != one.value.data() + one.value.size()) {
        return fail("bad value " + one.value);
      }
    }
    if (!seen_.emplace(one.family, one.labels).second) return fail("the series appears twice");
    series.push_back(std::move(one));
  }
  bool labels(std::string_view& line, LabelMap& out) {
    line.remove_prefix(1);
    while (true) {
      std::string label(line.substr(0, line.find('=')));
      if (!is_name(label, false)) return false;
      line.remove_prefix(label.size());
      if (!line.starts_with("=\"")) return false;
      line.remove_prefix(2);
      std::string value;
      while (!line.empty() && line.front() != '"') {
        char c = line.front();
        line.remove_prefix(1);
        if (c == '\\') {
          if (line.empty() || std::string_view("\\\"n").find(line.front()) == std::string::npos) {
            return false;
          }
          c = line.front() == 'n' ? '\n' : line.front();
          line.remove_prefix(1);
        }
        value += c;
      }
      if (line.size() < 2 || !out.emplace(std::move(label), std::move(value)).second) return false;
      line.remove_prefix(1);
      const char next = line.front();
      line.remove_prefix(1);
      if (next == '}') return true;
      if (next != ',') return false;
    }
  }

  int line_ = 0;
  std::string current_;
  std::set<std::pair<std::string, LabelMap>> seen_;
};

TEST(StrictPage, RefusesWhatPrometheusRefuses) {
  const std::string head = "# HELP a b\n# TYPE a gauge\n";
  EXPECT_EQ(StrictPage(head + "a 1\n").failure, "");
  EXPECT_EQ(StrictPage(head + "a{x=\"\\\"\\\\\\n\"} NaN\n").failure, "");
  for (const std::string& text :
       {std::string("a 1\n"), head + "a 1", head + "b 1\n", head + "a 1\na 1\n",
        head + "a{x=\"1\"} 1\na{x=\"1\"} 2\n", head + "a{x=\"\\t\"} 1\n", head + "a{x=\"1} 1\n",
        head + "a{x=\"1\",x=\"2\"} 1\n", head + "a{1x=\"1\"} 1\n", head + "a one\n", head + "a\n",
        head + "a{} 1\n", head + head, std::string("# HELP a b\n# HELP c d\n# TYPE a gauge\n"),
        head + "# HELP c d\n# TYPE c gauge\nc 1\na 1\n", head + "a{x=\"\xff\"} 1\n"}) {
    EXPECT_NE(StrictPage(text).failure, "") << text;
  }
}

// ---- a node ----------------------------------------------------------------------------------

struct Node {
  model::GpuInventory inventory;
  std::vector<GpuReading> readings;
  HealthBook health{HealthOptions()};
  Holders holders;
  std::map<int, Holder> processes;
  bool processes_known = false;
  ExportOptions options;

  explicit Node(int gpus) {
    options.hostname = "node-1";
    inventory.driver_version = "580.159.04";
    inventory.cuda_major = 13;
    for (int i = 0; i < gpus; ++i) {
      model::GpuDevice gpu;
      gpu.index = i;
      gpu.minor = i;
      gpu.uuid = "GPU-" + std::to_string(i);
      gpu.name = "NVIDIA H200";
      gpu.pci_bus_id = "0000:1" + std::to_string(i) + ":00.0";
      gpu.pci_bus_id[5] = 'a';
      gpu.memory_mib = 143771;
      inventory.gpus.push_back(gpu);
      GpuReading reading;
      reading.uuid = gpu.uuid;
      auto& c = reading.counters;
      c.sm_clock_mhz = 1980;
      c.power_w = 76.123;
      c.energy_mj = 18'446'744'073'709'551'615U;
      c.gpu_utilization = 80;
      c.memory_used_mib = 1000;
      c.memory_free_mib = 142000;
      c.gpu_temperature = 31;
      c.tensor_active = 0.25;
      readings.push_back(reading);
    }
    health.set_inventory(inventory, 1);
  }
  void cut(std::size_t gpu, int instances) {
    auto& device = inventory.gpus[gpu];
    device.mig_capable = device.mig_enabled = true;
    readings[gpu].counters.gpu_utilization.reset();
    for (int i = 0; i < instances; ++i) {
      model::MigInstance mig;
      mig.uuid = "MIG-" + std::to_string(gpu) + "-" + std::to_string(i);
      mig.profile = "1g.18gb";
      mig.gpu_instance = 7 + i;
      mig.memory_mib = 16384;
      device.mig.push_back(mig);
      model::GpuCounters counters;
      counters.memory_used_mib = static_cast<std::uint64_t>(100 + i);
      counters.graphics_active = 0.5;
      readings[gpu].mig.emplace_back(mig.uuid, counters);
    }
  }
  std::string text(std::int64_t now_ns = 5'500'000'000) const {
    ExportInput input;
    input.inventory = &inventory;
    input.readings = &readings;
    input.health = &health;
    input.holders = &holders;
    if (processes_known) input.processes = &processes;
    input.sampled_ns = 4'000'000'000;
    input.now_ns = now_ns;
    return export_metrics(input, options);
  }
  StrictPage page() const {
    StrictPage page(text());
    EXPECT_EQ(page.failure, "");
    return page;
  }
};

TEST(Exporter, WholeGpuLooksAsDcgmShowsIt) {
  Node node(1);
  const std::string text = node.text();
  EXPECT_NE(
      text.find("# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).\n"
                "# TYPE DCGM_FI_DEV_SM_CLOCK gauge\n"
                "DCGM_FI_DEV_SM_CLOCK{gpu=\"0\",UUID=\"GPU-0\",pci_bus_id=\"00000000:A0:00.0\","
                "device=\"nvidia0\",modelName=\"NVIDIA H200\",hostname=\"node-1\","
                "DCGM_FI_DRIVER_VERSION=\"580.159.04\"} 1980\n"),
      std::string::npos)
      << text;
  StrictPage page = node.page();
  EXPECT_EQ(page.value("DCGM_FI_DEV_POWER_USAGE"), "76.123");
  EXPECT_EQ(page.value("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"), "18446744073709551615");
  EXPECT_EQ(page.types["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"], "counter");
  EXPECT_EQ(page.value("DCGM_FI_DEV_XID_ERRORS", {{"err_code", "0"}, {"err_msg", "No Error"}}),
            "0");
  EXPECT_EQ(page.value("DCGM_FI_DEV_ROW_REMAP_FAILURE"), "0");
  EXPECT_EQ(page.value("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"), "0.25");
  EXPECT_EQ(page.of("DCGM_FI_DEV_MEMORY_TEMP").size(), 0u);  // not told: no series, no header
  EXPECT_FALSE(page.types.contains("DCGM_FI_DEV_MEMORY_TEMP"));
  EXPECT_EQ(page.value("berth_gpu_sample_age_seconds", {{"hostname", "node-1"}}), "1.5");
  EXPECT_FALSE(page.series[0].labels.contains("pod"));
  EXPECT_EQ(node.text(), text);
  EXPECT_EQ(StrictPage(node.text(1)).value("berth_gpu_sample_age_seconds"), "0");
}

TEST(Exporter, HostnameInBothSpellingsAndNone) {
  Node node(1);
  node.options.old_hostname = true;
  EXPECT_EQ(
      node.page().value("DCGM_FI_DEV_SM_CLOCK", {{"hostname", "node-1"}, {"Hostname", "node-1"}}),
      "1980");
  node.options.hostname = "";
  StrictPage page = node.page();
  EXPECT_FALSE(page.series[0].labels.contains("hostname"));
  EXPECT_EQ(page.value("berth_gpu_sample_age_seconds"), "1.5");
}

TEST(Exporter, HealthAndXids) {
  Node node(2);
  model::GpuEvent event;
  event.uuid = "GPU-1";
  event.code = 31;
  node.health.event(event, 10);
  node.health.event(event, 20);
  event.code = 79;
  node.health.event(event, 30);
  StrictPage page = node.page();
  EXPECT_EQ(page.value("berth_gpu_health", {{"gpu", "0"}, {"code", ""}, {"severity", "fine"}}),
            "1");
  EXPECT_EQ(
      page.value("berth_gpu_health",
                 {{"gpu", "1"}, {"code", "Xid79"}, {"severity", "fatal"}, {"heals", "gpu-reset"}}),
      "0");
  EXPECT_EQ(page.value("berth_gpu_known", {{"gpu", "1"}}), "1");
  EXPECT_EQ(page.value("berth_gpu_xid_total", {{"gpu", "1"}, {"xid", "31"}}), "2");
  EXPECT_EQ(page.value("berth_gpu_xid_total", {{"gpu", "1"}, {"xid", "79"}}), "1");
  EXPECT_EQ(page.types["berth_gpu_xid_total"], "counter");
  EXPECT_EQ(
      page.value("DCGM_FI_DEV_XID_ERRORS",
                 {{"gpu", "1"}, {"err_code", "79"}, {"err_msg", "the GPU has fallen off the bus"}}),
      "79");
  event.code = 999;
  node.health.event(event, 40);
  EXPECT_EQ(node.page().value("DCGM_FI_DEV_XID_ERRORS", {{"err_msg", "Unknown Error"}}), "999");
}

TEST(Exporter, StaleValuesAreNotShown) {
  Node node(2);
  node.readings[0].answer = GpuAnswer::kSilent;
  node.health.readings(node.readings, 10);
  StrictPage page = node.page();
  EXPECT_EQ(page.of("DCGM_FI_DEV_SM_CLOCK").size(), 1u);
  EXPECT_EQ(page.of("DCGM_FI_DEV_ROW_REMAP_FAILURE").size(), 1u);
  EXPECT_EQ(page.of("DCGM_FI_DEV_XID_ERRORS").size(), 2u);  // what took it away is still told
  EXPECT_EQ(page.value("berth_gpu_known", {{"gpu", "0"}}), "0");
  EXPECT_EQ(page.value("berth_gpu_health", {{"gpu", "0"}, {"code", "DriverSilent"}}), "0");
  EXPECT_EQ(StrictPage(export_metrics({}, {})).failure, "");  // nothing at all
}

TEST(Exporter, HolderOfAWholeGpu) {
  Node node(2);
  node.holders = {{"GPU-0", {{"team-a", "train-0", "main", "uid-1", "GPU-0"}}}};
  StrictPage page = node.page();
  EXPECT_EQ(page.value(
                "DCGM_FI_DEV_GPU_UTIL",
                {{"gpu", "0"}, {"pod", "train-0"}, {"namespace", "team-a"}, {"container", "main"}}),
            "80");
  EXPECT_FALSE(page.of("DCGM_FI_DEV_GPU_UTIL", {{"gpu", "0"}})[0].labels.contains("pod_uid"));
  EXPECT_FALSE(page.of("DCGM_FI_DEV_GPU_UTIL", {{"gpu", "1"}})[0].labels.contains("pod"));
  node.options.pod_uid = true;
  EXPECT_EQ(node.page().of("DCGM_FI_DEV_GPU_UTIL", {{"pod_uid", "uid-1"}}).size(), 1u);
}

TEST(Exporter, MigInstances) {
  Node node(2);
  node.cut(0, 3);
  node.holders = {{"MIG-0-1", {{"team-a", "infer", "main", "", "MIG-0-1"}}}};
  StrictPage page = node.page();
  EXPECT_EQ(page.of("DCGM_FI_DEV_FB_USED", {{"gpu", "0"}}).size(), 3u);
  EXPECT_EQ(
      page.value(
          "DCGM_FI_DEV_FB_USED",
          {{"UUID", "GPU-0"}, {"GPU_I_PROFILE", "1g.18gb"}, {"GPU_I_ID", "8"}, {"pod", "infer"}}),
      "101");
  EXPECT_EQ(page.of("DCGM_FI_DEV_FB_USED", {{"pod", "infer"}}).size(), 1u);
  // Of the whole GPU, repeated as DCGM does; what is the instance's own and not told is absent.
  EXPECT_EQ(page.value("DCGM_FI_DEV_POWER_USAGE", {{"gpu", "0"}, {"GPU_I_ID", "7"}}), "76.123");
  EXPECT_EQ(page.of("DCGM_FI_DEV_FB_FREE", {{"gpu", "0"}}).size(), 0u);
  EXPECT_EQ(page.of("DCGM_FI_DEV_GPU_UTIL", {{"gpu", "0"}}).size(), 0u);
  EXPECT_EQ(page.value("DCGM_FI_PROF_GR_ENGINE_ACTIVE", {{"gpu", "0"}, {"GPU_I_ID", "7"}}), "0.5");
  EXPECT_FALSE(page.of("DCGM_FI_DEV_FB_USED", {{"gpu", "0"}})[0].labels.contains("GPU_CI_ID"));

  for (auto& mig : node.inventory.gpus[0].mig) {  // three compute instances of one GPU instance
    mig.compute_instance = mig.gpu_instance - 7;
    mig.gpu_instance = 1;
  }
  EXPECT_EQ(node.page().of("DCGM_FI_DEV_FB_USED", {{"GPU_I_ID", "1"}, {"GPU_CI_ID", "2"}}).size(),
            1u);
  node.inventory.gpus[0].mig.clear();  // enabled, nothing cut yet
  EXPECT_EQ(node.page().of("DCGM_FI_DEV_POWER_USAGE", {{"gpu", "0"}}).size(), 1u);
}

TEST(Exporter, SharedGpuWithoutProcessesShowsTheWholeToEach) {
  Node node(1);
  node.holders = {{"GPU-0",
                   {{"a", "p1", "c", "", "GPU-0::1"},
                    {"a", "p1", "c", "", "GPU-0::3"},
                    {"b", "p2", "c", "", "GPU-0::0"}}}};
  StrictPage page = node.page();
  EXPECT_EQ(page.of("DCGM_FI_DEV_FB_USED").size(), 2u);  // two replicas of one container: once
  EXPECT_EQ(page.value("DCGM_FI_DEV_FB_USED", {{"pod", "p1"}, {"vgpu", "1"}}), "1000");
  EXPECT_EQ(page.value("DCGM_FI_DEV_GPU_UTIL", {{"pod", "p2"}, {"vgpu", "0"}}), "80");
}

TEST(Exporter, SharedGpuIsSplitByProcesses) {
  Node node(1);
  node.processes_known = true;
  node.holders = {{"GPU-0",
                   {{"a", "p1", "c", "", "GPU-0::0"},
                    {"a", "p2", "c", "", "GPU-0::1"},
                    {"a", "p3", "c", "", "GPU-0::2"}}}};
  node.readings[0].processes = {{10, 300, 50.0, ""},
                                {11, 100, 10.0, ""},
                                {20, 400, std::nullopt, ""},
                                {30, 64, 3.0, ""},
                                {12, 999, 9.0, "MIG-x"}};
  node.processes = {{10, {"a", "p1", "c", "", ""}},
                    {11, {"a", "p1", "c", "", ""}},
                    {12, {"a", "p1", "c", "", ""}},
                    {20, {"a", "p2", "c", "", ""}}};
  StrictPage page = node.page();
  EXPECT_EQ(page.value("DCGM_FI_DEV_FB_USED", {{"pod", "p1"}}), "400");
  EXPECT_EQ(page.value("DCGM_FI_DEV_GPU_UTIL", {{"pod", "p1"}}), "60");
  EXPECT_EQ(page.value("DCGM_FI_DEV_FB_USED", {{"pod", "p2"}}), "400");
  EXPECT_EQ(page.value("DCGM_FI_DEV_GPU_UTIL", {{"pod", "p2"}}),
            "80");  // its process does not tell
  EXPECT_EQ(page.value("DCGM_FI_DEV_FB_USED", {{"pod", "p3"}}), "0");
  EXPECT_EQ(page.value("DCGM_FI_DEV_GPU_UTIL", {{"pod", "p3"}}), "0");
  EXPECT_EQ(page.value("DCGM_FI_DEV_POWER_USAGE", {{"pod", "p3"}}), "76.123");
  node.processes.clear();  // containers of processes cannot be told here
  EXPECT_EQ(node.page().value("DCGM_FI_DEV_FB_USED", {{"pod", "p3"}}), "1000");
}

TEST(Exporter, SharedMigInstanceIsSplitToo) {
  Node node(1);
  node.cut(0, 2);
  node.processes_known = true;
  node.holders = {
      {"MIG-0-1", {{"a", "p1", "c", "", "MIG-0-1::0"}, {"a", "p2", "c", "", "MIG-0-1::1"}}}};
  node.readings[0].processes = {{10, 30, std::nullopt, "MIG-0-1"}, {11, 40, std::nullopt, ""}};
  node.processes = {{10, {"a", "p1", "c", "", ""}}, {11, {"a", "p2", "c", "", ""}}};
  StrictPage page = node.page();
  EXPECT_EQ(page.value("DCGM_FI_DEV_FB_USED", {{"pod", "p1"}, {"GPU_I_ID", "8"}}), "30");
  EXPECT_EQ(page.value("DCGM_FI_DEV_FB_USED", {{"pod", "p2"}, {"vgpu", "1"}}), "0");
  EXPECT_EQ(page.value("DCGM_FI_DEV_FB_USED", {{"GPU_I_ID", "7"}}), "100");
}

TEST(Exporter, OldNamesComeInAddition) {
  Node node(1);
  node.holders = {{"GPU-0", {{"a", "p", "c", "u", "GPU-0"}}}};
  const std::size_t before = node.page().series.size();
  node.options.old_names = true;
  StrictPage page = node.page();
  EXPECT_GT(page.series.size(), before);
  EXPECT_EQ(
      page.value(
          "dcgm_sm_clock",
          {{"uuid", "GPU-0"}, {"pod_name", "p"}, {"pod_namespace", "a"}, {"container_name", "c"}}),
      "1980");
  EXPECT_EQ(page.value("DCGM_FI_DEV_SM_CLOCK", {{"pod", "p"}}), "1980");
  EXPECT_EQ(page.value("dcgm_gpu_utilization"), "80");
  EXPECT_EQ(page.types["dcgm_total_energy_consumption"], "counter");
}

TEST(Exporter, HostileLabelsAreEscaped) {
  Node node(1);
  const std::string evil = "a\"} 1\nfake{x=\"\\\xff\x1b";
  node.holders = {{"GPU-0", {{evil, evil, evil, evil, "GPU-0::" + evil}}}};
  node.inventory.gpus[0].name = evil;
  node.inventory.driver_version = evil;
  node.options.hostname = evil;
  node.options.old_names = node.options.old_hostname = node.options.pod_uid = true;
  node.options.rows[0].help = "two\nlines \\ back";
  StrictPage page = node.page();
  EXPECT_TRUE(page.of("fake").empty());
  EXPECT_EQ(page.series[0].labels["pod"], "a\"} 1\nfake{x=\"\\\xef\xbf\xbd\x1b");
  EXPECT_EQ(page.helps["DCGM_FI_DEV_SM_CLOCK"], "two\\nlines \\\\ back");
}

TEST(Exporter, BufferIsReused) {
  Node node(2);
  ExportInput input;
  input.inventory = &node.inventory;
  input.readings = &node.readings;
  input.health = &node.health;
  std::string out;
  export_metrics(input, node.options, out);
  const char* memory = out.data();
  const std::string first = out;
  export_metrics(input, node.options, out);
  EXPECT_EQ(out.data(), memory);
  EXPECT_EQ(out, first);
}

TEST(Holders, OfEveryKindOfResource) {
  std::vector<model::OfferedResource> resources(2);
  resources[0].name = "nvidia.com/gpu.shared";
  resources[0].devices = {{"GPU-0::0", "GPU-0"}, {"GPU-0::1", "GPU-0"}};
  resources[1].name = "team.example.com/slice";  // renamed
  resources[1].devices = {{"MIG-1", "MIG-1"}};
  const std::vector<model::HeldDevices> held = {
      {"a", "p1", "c", "nvidia.com/gpu.shared", {"GPU-0::1"}},
      {"a", "p2", "c", "nvidia.com/gpu.shared", {"GPU-0::0"}},
      {"a", "p3", "c", "team.example.com/slice", {"MIG-1"}},
      {"a", "p4", "c", "nvidia.com/gpu", {"GPU-0"}},            // from before the rename
      {"a", "p5", "c", "nvidia.com/gpu.shared", {"GPU-9::2"}},  // left the inventory since
      {"a", "p6", "c", "rdma/hca", {"mlx5_0"}},
      {"a", "p3", "c", "team.example.com/slice", {"MIG-1"}},
  };
  const Holders expected = {
      {"GPU-0",
       {{"a", "p1", "c", "", "GPU-0::1"},
        {"a", "p2", "c", "", "GPU-0::0"},
        {"a", "p4", "c", "", "GPU-0"}}},
      {"GPU-9", {{"a", "p5", "c", "", "GPU-9::2"}}},
      {"MIG-1", {{"a", "p3", "c", "", "MIG-1"}}},
  };
  EXPECT_EQ(holders_of(held, resources), expected);
}

TEST(Holders, OfAProcess) {
  const Holders holders = {
      {"GPU-0", {{"a", "one", "main", "u1", "GPU-0::0"}, {"a", "two", "left", "u2", "GPU-0::1"}}},
      {"GPU-1", {{"a", "two", "right", "u2", "GPU-1::0"}, {"a", "one", "main", "u1", "GPU-1::1"}}},
  };
  const std::map<std::string, std::string> names = {{"c2", "right"}, {"c3", "logs"}};
  const auto container = [&](const std::vector<model::ContainerPlace>& places) -> std::string {
    const Holder* found = holder_at(holders, places, names);
    return found == nullptr ? "" : found->pod + "/" + found->container;
  };
  EXPECT_EQ(container({{"u1", "unheard"}}), "one/main");  // only this one of the pod holds anything
  EXPECT_EQ(container({{"u2", "c2"}}), "two/right");
  EXPECT_EQ(container({{"u2", "unheard"}}), "") << "either of two";
  EXPECT_EQ(container({{"u2", "c3"}}), "") << "a container that holds nothing";
  EXPECT_EQ(container({{"of-a-cluster-inside", "x"}, {"u1", "y"}}), "one/main");
  EXPECT_EQ(container({{"u3", "z"}}), "");
  EXPECT_EQ(container({}), "");
}

TEST(Counters, FileIsReadAsTheExportersOwn) {
  auto rows = parse_counters_csv(
      "# Format\r\n"
      "\n"
      "DCGM_FI_DEV_SM_CLOCK,  gauge, SM clock frequency (in MHz).\r\n"
      "  DCGM_FI_PROF_SM_ACTIVE ,gauge,\"Ratio, with a comma\"\n"
      "DCGM_FI_DRIVER_VERSION, label, Driver Version");
  ASSERT_TRUE(rows.ok()) << rows.error().to_string();
  EXPECT_EQ(*rows, (std::vector<CounterRow>{
                       {"DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock frequency (in MHz)."},
                       {"DCGM_FI_PROF_SM_ACTIVE", "gauge", "Ratio, with a comma"},
                       {"DCGM_FI_DRIVER_VERSION", "label", "Driver Version"}}));
  EXPECT_TRUE(parse_counters_csv("")->empty());
  std::string defaults;
  for (const CounterRow& row : default_rows()) {
    defaults += row.field + ", " + row.type + ", " + row.help + "\n";
  }
  auto read_back = parse_counters_csv(defaults);
  ASSERT_TRUE(read_back.ok()) << read_back.error().to_string();
  EXPECT_EQ(*read_back, default_rows());
  EXPECT_EQ(default_rows().size(), 26u);
}

TEST(Counters, MistakesAreRefusedWithTheirLine) {
  const std::pair<std::string, std::string> cases[] = {
      {"# x\nDCGM_FI_DEV_NOPE, gauge, x",
       "line 2: found \"DCGM_FI_DEV_NOPE\", want a field listed in docs/metrics.md"},
      {"DCGM_FI_DEV_SM_CLOCK, histogram, x",
       "line 1: DCGM_FI_DEV_SM_CLOCK: found type \"histogram\", want gauge or counter"},
      {"DCGM_FI_DEV_SM_CLOCK, label, x",
       "line 1: DCGM_FI_DEV_SM_CLOCK: found type \"label\", want gauge or counter"},
      {"DCGM_FI_DRIVER_VERSION, gauge, x",
       "line 1: DCGM_FI_DRIVER_VERSION: found type \"gauge\", want label"},
      {"DCGM_FI_DEV_SM_CLOCK, gauge",
       "line 1: DCGM_FI_DEV_SM_CLOCK: found a help text of 0 bytes, want 1..1024"},
      {"DCGM_FI_DEV_SM_CLOCK, gauge, x\n\nDCGM_FI_DEV_SM_CLOCK, gauge, y",
       "line 3: DCGM_FI_DEV_SM_CLOCK appears twice"},
  };
  for (const auto& [text, message] : cases) {
    auto rows = parse_counters_csv(text);
    ASSERT_FALSE(rows.ok()) << text;
    EXPECT_EQ(rows.error().to_string(), message);
  }
  EXPECT_FALSE(parse_counters_csv(std::string(2 << 20, '#')).ok());
}

}  // namespace
}  // namespace berth::monitor
