// What people see fits their screen, whatever things are called: every command that lists
// something, on random clusters whose names are long, wide, piled up or hostile.
#include <gtest/gtest.h>

#include <clocale>
#include <cstdlib>
#include <cwchar>
#include <sstream>

#include "app/cli/cli.h"
#include "app/views/sheet.h"
#include "base/random.h"
#include "base/utf8.h"
#include "text/columns.h"
#include "text/json.h"
#include "text/json_writer.h"

#ifndef BERTH_SCREEN_SEEDS
#define BERTH_SCREEN_SEEDS 12
#endif

namespace berth::app {
namespace {

constexpr std::int64_t kScreensNow = std::int64_t{1'735'732'800} * 1'000'000'000;

struct Shown {
  int code = 0;
  std::string out, err;
};

Shown show(const std::vector<std::string>& arguments, const std::string& manifests) {
  std::istringstream in(manifests);
  std::ostringstream out, err;
  FakeClock clock(kScreensNow);
  Terminal terminal{.in = in, .out = out, .err = err, .wall = clock, .monotonic = clock};
  Shown shown;
  shown.code = run_command(arguments, terminal);
  shown.out = out.str();
  shown.err = err.str();
  return shown;
}

// Writes objects with names of all sorts, the same for a seed.
class WildCluster {
 public:
  explicit WildCluster(std::uint64_t seed) : random_(seed) {
    const int nodes = 1 + static_cast<int>(random_.below(6));
    for (int i = 0; i < nodes; ++i) node(i);
    const int pods = static_cast<int>(random_.below(12));
    for (int i = 0; i < pods; ++i) pod(i);
    queues();
    for (int i = 0; i < 3; ++i) job(i);
    for (int i = 0; i < 4; ++i) event(i);
  }

  const std::string& text() const { return text_; }
  const std::vector<std::string>& subjects() const { return subjects_; }

 private:
  static std::string times(int n, std::string_view what) {
    std::string out;
    for (int i = 0; i < n; ++i) out += what;
    return out;
  }

  // kept: names that the API server would accept, so that they get as far as the tables.
  std::string wild(const std::string& stem, bool kept = false) {
    const int n = 1 + static_cast<int>(random_.below(40));
    switch (random_.below(kept ? 3 : 9)) {
      case 0:
        return stem;
      case 1:
        return stem + times(n, "-0123a");  // up to 240
      case 2:
        return stem + "-" + times(n, "x") + "-" + std::to_string(random_.below(1000));
      case 3:
        return stem + times(n, "\u8a13\u7df4");
      case 4:
        return stem + "e" + times(n, "\u0301") + times(n, "a\u0308");
      case 5:
        return "\x1b[31m" + stem + "\x1b]0;title\x07";
      case 6:
        return stem + "\nnode/evil   drained\r\tx";
      case 7:
        return "\u202e" + stem + "\u2066\u200f\u061c\u009b2J";
      default:
        return stem + " " + times(n, "\U0001F680 ") + "\\";
    }
  }

  // labels: as JSON.
  void begin(const char* version, const char* kind, const std::string& name,
             const std::string& ns = {}, const std::string& labels = "{}") {
    object_ = "{\"apiVersion\":" + quoted(version) + ",\"kind\":" + quoted(kind) +
              ",\"metadata\":{\"name\":" + quoted(name) +
              (ns.empty() ? "" : ",\"namespace\":" + quoted(ns)) + ",\"labels\":" + labels +
              ",\"creationTimestamp\":\"2025-01-01T11:00:00Z\"}";
  }
  void end() {
    const Result<text::Document> value = text::parse_json(object_ + "}");
    ASSERT_TRUE(value.ok()) << object_;
    std::string text = text::to_json(value->root());
    // YAML takes C1 controls escaped alone.
    constexpr std::string_view kC1 = "\u009b";
    for (std::size_t at = text.find(kC1); at != std::string::npos; at = text.find(kC1)) {
      text.replace(at, kC1.size(), "\\u009b");
    }
    text_ += text + "\n---\n";
  }
  void raw(const char* key, const std::string& json) { object_ += "," + quoted(key) + ":" + json; }
  static std::string quoted(const std::string& text) {
    text::JsonWriter out;
    out.value(text);
    return std::move(out).take();
  }

  void node(int i) {
    const std::string name = wild("n" + std::to_string(i), random_.chance(2, 3));
    const int gpus = static_cast<int>(random_.below(17));
    nodes_.push_back(name);
    const std::string count = std::to_string(gpus);
    begin("v1", "Node", name, "",
          R"({"nvidia.com/gpu.product":)" +
              quoted(random_.chance(1, 3) ? wild("NVIDIA-H100") : "NVIDIA-H100-80GB-HBM3") +
              R"(,"nvidia.com/gpu.count":")" + count + R"(","topology.kubernetes.io/rack":)" +
              quoted(wild("r", true)) + "}");
    raw("spec",
        random_.chance(1, 4)
            ? R"({"unschedulable":true,"taints":[{"key":"node.kubernetes.io/unschedulable",)"
              R"("effect":"NoSchedule"}]})"
        : random_.chance(1, 4) ? R"({"taints":[{"key":)" + quoted(wild("team", true)) +
                                     R"(,"value":"x","effect":"NoSchedule"}]})"
                               : "{}");
    raw("status", R"({"allocatable":{"cpu":"96","memory":"1Ti","pods":"110","nvidia.com/gpu":")" +
                      count + R"("},"conditions":[{"type":"Ready","status":")" +
                      (random_.chance(1, 5) ? "Unknown" : "True") + R"("}]})");
    end();
    if (gpus == 0 || !random_.chance(1, 2)) return;
    begin("berth.dev/v1alpha1", "GpuNode", name);
    std::string list;
    for (int g = 0; g < gpus; ++g) {
      list += (g == 0 ? "" : ",") + std::string(R"({"index":)") + std::to_string(g);
      if (random_.chance(1, 4)) {
        list += R"(,"health":{"state":"Unhealthy","reason":)" + quoted(wild("Xid 79")) + "}";
      }
      list += "}";
    }
    raw("status", R"({"gpus":[)" + list + "]}");
    end();
  }

  std::string container(int gpus) {
    return R"("containers":[{"name":"c","image":)" + quoted(wild("busybox")) +
           R"(,"resources":{"limits":{"nvidia.com/gpu":")" + std::to_string(gpus) + R"("}}}])";
  }

  void pod(int i) {
    const std::string ns = wild("t", true),
                      name = wild("p" + std::to_string(i), random_.chance(1, 2));
    subjects_.push_back(ns + "/" + name);
    begin("v1", "Pod", name, ns);
    const bool bound = random_.chance(1, 2);
    std::string spec = "{" + container(static_cast<int>(random_.below(9)));
    if (bound) spec += R"(,"nodeName":)" + quoted(nodes_[random_.below(nodes_.size())]);
    if (random_.chance(1, 4)) {
      spec +=
          R"(,"nodeSelector":{)" + quoted(wild("k", true)) + ":" + quoted(wild("v", true)) + "}";
    }
    raw("spec", spec + "}");
    if (bound && random_.chance(1, 3)) {
      raw("status", R"({"startTime":"2025-01-01T11:00:00Z","conditions":[{"type":)"
                    R"("DisruptionTarget","status":"True","reason":)" +
                        quoted(wild("PreemptionByScheduler")) + R"(,"message":)" +
                        quoted(wild("preempted by t/other")) + "}]}");
    }
    end();
  }

  void queues() {
    const std::string flavor = wild("h100", true), queue = wild("research", true);
    local_ = wild("lq", true);
    queue_ns_ = wild("team", true);
    begin("kueue.x-k8s.io/v1beta2", "ResourceFlavor", flavor);
    end();
    begin("kueue.x-k8s.io/v1beta2", "ClusterQueue", queue);
    raw("spec", R"({"cohortName":)" + quoted(wild("ml", true)) +
                    R"(,"namespaceSelector":{},"resourceGroups":[{"coveredResources":)"
                    R"(["nvidia.com/gpu"],"flavors":[{"name":)" +
                    quoted(flavor) + R"(,"resources":[{"name":"nvidia.com/gpu","nominalQuota":)" +
                    std::to_string(random_.below(3) == 0 ? 1'000'000 : random_.below(20)) +
                    "}]}]}]}");
    end();
    begin("kueue.x-k8s.io/v1beta2", "LocalQueue", local_, queue_ns_);
    raw("spec", R"({"clusterQueue":)" + quoted(queue) + "}");
    end();
    subjects_.push_back(queue);
  }

  void job(int i) {
    const std::string name = wild("j" + std::to_string(i), true);
    subjects_.push_back(queue_ns_ + "/" + name);
    begin("batch/v1", "Job", name, queue_ns_,
          R"({"kueue.x-k8s.io/queue-name":)" + quoted(local_) + "}");
    const std::string pods = std::to_string(1 + random_.below(5));
    raw("spec", R"({"suspend":true,"parallelism":)" + pods + R"(,"completions":)" + pods +
                    R"(,"template":{"spec":{"restartPolicy":"Never",)" +
                    container(static_cast<int>(random_.below(12))) + "}}}");
    end();
  }

  void event(int i) {
    begin("v1", "Event", "e" + std::to_string(i), "t");
    raw("reason", quoted("Preempted"));
    raw("message", quoted(wild("preempted to make room for t/other")));
    raw("lastTimestamp", quoted("2025-01-01T11:30:00Z"));
    raw("involvedObject", R"({"kind":)" + quoted(wild("Pod")) + R"(,"namespace":)" +
                              quoted(wild("t")) + R"(,"name":)" + quoted(wild("p")) + "}");
    end();
  }

  Random random_;
  std::string object_;  // the one at hand, open at its end
  std::string text_, local_, queue_ns_;
  std::vector<std::string> nodes_, subjects_;
};

// What a terminal acts on, or what is no text at all. Newlines end lines.
std::string forbidden_in(std::string_view text) {
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    const bool bidi = (c.code >= 0x202a && c.code <= 0x202e) ||
                      (c.code >= 0x2066 && c.code <= 0x2069) || c.code == 0x200e ||
                      c.code == 0x200f || c.code == 0x61c;
    const bool control = (c.code < 0x20 && c.code != '\n') || (c.code >= 0x7f && c.code < 0xa0);
    if (!c.valid || bidi || control) return std::string(text.substr(0, 40));
    text.remove_prefix(c.size);
  }
  return "";
}

// Columns as the system counts them, not as we do.
int system_width(std::string_view line) {
  int out = 0;
  while (!line.empty()) {
    const Utf8Char c = decode_utf8(line);
    out += std::max(0, wcwidth(static_cast<wchar_t>(c.code)));
    line.remove_prefix(c.size);
  }
  return out;
}

// Commands that are to be pasted stand in one line, however long.
bool is_to_paste(std::string_view line) {
  return line.starts_with("  replay ") || line.starts_with("Why exactly") ||
         line.starts_with("Who waits:");
}

void expect_fits(const std::vector<std::string>& arguments, const Shown& shown) {
  std::string command;
  for (const std::string& one : arguments) command += one + ' ';
  SCOPED_TRACE(command);
  EXPECT_EQ(forbidden_in(shown.out), "");
  EXPECT_EQ(forbidden_in(shown.err), "");
  std::istringstream lines(shown.out);
  std::string line;
  while (std::getline(lines, line)) {
    if (is_to_paste(line)) continue;
    EXPECT_LE(system_width(line), static_cast<int>(kScreenWidth)) << line;
    EXPECT_LE(text::columns_of(line), kScreenWidth) << line;
  }
}

// The number that ends below a head of the table's first line.
int number_below(const std::string& head, const std::string& table, const std::string& line) {
  const std::size_t at = table.find(head);
  const std::string_view start = text::first_columns(line, at + head.size());
  const std::size_t digits = start.find_last_not_of("0123456789");
  const std::string_view number =
      digits == std::string_view::npos ? start : start.substr(digits + 1);
  return number.empty() ? -1 : std::atoi(std::string(number).c_str());
}

// No number of the table of nodes is lost: the column adds up to what the last line says.
void expect_numbers(const std::string& table) {
  if (table.starts_with("no GPUs")) return;
  std::istringstream lines(table);
  std::string line, head;
  std::getline(lines, head);
  int sum = 0, total = -1;
  while (std::getline(lines, line)) {
    if (line.starts_with("used ")) {
      total = std::atoi(line.substr(line.rfind(' ') + 1).c_str());
      break;
    }
    sum += number_below("GPUS", head, line);
  }
  EXPECT_EQ(sum, total) << table;
}

class Screens : public testing::Test {
 protected:
  Screens() : utf8_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (utf8_ != nullptr) before_ = uselocale(utf8_);
  }
  ~Screens() override {
    if (utf8_ == nullptr) return;
    uselocale(before_);
    freelocale(utf8_);
  }
  locale_t utf8_, before_ = nullptr;
};

TEST_F(Screens, FitEightyColumnsAndHoldNothingThatATerminalActsOn) {
  const std::uint64_t seeds = std::getenv("BERTH_SOAK") != nullptr ? 500 : BERTH_SCREEN_SEEDS;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const WildCluster cluster(seed);
    std::vector<std::vector<std::string>> all = {
        {"status"},
        {"queue"},
        {"gpus"},
        {"gpus", "--tree"},
        {"gpus", "--devices"},
        {"fit", "--gpus", "4", "--pods", "2"},
        {"fit", "--gpus", "1", "--model", "\x1b[2J" + std::string(100, 'm')},
        {"preempted", "-A"},
        {"doctor"},
        {"plan"},
    };
    for (const std::string& subject : cluster.subjects()) {
      all.push_back({"why", subject});
      all.push_back({"why-no-gpu", subject});
      all.push_back({"plan", "--explain", subject});
    }
    all.push_back({"queue", cluster.subjects().back()});
    for (std::vector<std::string> arguments : all) {
      arguments.insert(arguments.end(), {"-f", "-"});
      const Shown shown = show(arguments, cluster.text());
      expect_fits(arguments, shown);
      EXPECT_TRUE(arguments[0] != "gpus" || shown.code == 0) << shown.err;
      if (arguments[0] == "gpus" && arguments[1] == "-f") expect_numbers(shown.out);
    }
    expect_fits({"lint"}, show({"lint", "-"}, cluster.text()));
    if (HasFailure()) return;
  }
}

TEST_F(Screens, HelpFitsAsWell) {
  for (const char* command : {"plan", "why", "why-no-gpu", "up", "run", "controller", "agent",
                              "lint", "convert", "replay", "status", "gpus", "doctor", "queue",
                              "preempted", "fit", "snapshot", "version", "completion"}) {
    const Shown help = show({command, "--help"}, "");
    EXPECT_EQ(help.code, 0) << command;
    std::istringstream lines(help.out);
    std::string line;
    while (std::getline(lines, line)) EXPECT_LE(text::columns_of(line), 140U) << line;
    EXPECT_NE(help.out.find("Exit code"), std::string::npos) << command;
  }
}

}  // namespace
}  // namespace berth::app
