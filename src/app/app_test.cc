// Whole commands, on inputs that people really have and on inputs that somebody made up.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/cli/cli.h"
#include "app/input.h"
#include "app/plan/plan_json.h"
#include "app/plan/policy_option.h"
#include "app/words.h"
#include "text/json.h"
#include "text/yaml.h"

namespace berth::app {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  int code = 0;
  std::string out, err;
};

// A folder of its own for each test, gone afterwards.
class CommandTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() /
              (std::string("berth-app-test-") + info->test_suite_name() + "-" + info->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, std::string_view bytes) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path.string();
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  Outcome run(std::vector<std::string> arguments, const std::string& standard_input = "") {
    std::istringstream in(standard_input);
    std::ostringstream out, err;
    FakeClock clock(std::int64_t{1'735'732'800} * 1'000'000'000);
    Terminal terminal{.in = in, .out = out, .err = err, .wall = clock, .monotonic = clock};
    Outcome outcome;
    outcome.code = run_command(arguments, terminal);
    outcome.out = out.str();
    outcome.err = err.str();
    return outcome;
  }
  Outcome plan(const std::string& manifests, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"plan", "-f", "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments, manifests);
  }

  fs::path folder_;
};

constexpr const char* kNode = R"(
apiVersion: v1
kind: Node
metadata:
  name: n0
  labels: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3, nvidia.com/gpu.count: "8"}
status:
  allocatable: {cpu: "96", memory: 1Ti, pods: "110", nvidia.com/gpu: "8"}
  conditions: [{type: Ready, status: "True"}]
---
)";

std::string pod(const std::string& name, const std::string& gpus, const std::string& more = "") {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: \"" + name + "\", namespace: t}\nspec:\n" +
         more + "  containers:\n  - name: c\n    resources: {limits: {nvidia.com/gpu: \"" + gpus +
         "\"}}\n---\n";
}

std::string asking(const std::string& limits) {
  return "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, "
         "resources: "
         "{limits: {" +
         limits + "}}}]}}\n---\n";
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// ---- the command line ----

TEST_F(CommandTest, HelpAndVersion) {
  EXPECT_TRUE(has(run({"--help"}).out, "plan"));
  EXPECT_EQ(run({"--help"}).code, 0);
  EXPECT_TRUE(has(run({"plan", "--help"}).out, "--explain"));
  EXPECT_TRUE(has(run({"--version"}).out, "berth 0."));
}

TEST_F(CommandTest, WrongUseIsCodeTwoAndSaysWhatIsWrong) {
  EXPECT_EQ(run({}).code, 2);
  EXPECT_EQ(run({"plan"}).code, 2);
  EXPECT_EQ(run({"frobnicate"}).code, 2);
  EXPECT_TRUE(has(plan("", {"--cycles", "0"}).err, "want until-stable or a number"));
  EXPECT_TRUE(has(plan("", {"-o", "xml"}).err, "want table, json, yaml or csv"));
  EXPECT_TRUE(has(plan("", {"--policy", "best"}).err, "fragmentation, pack or spread"));
  EXPECT_TRUE(has(plan("", {"--max-input", "-3"}).err, "want a size"));
  EXPECT_EQ(plan("", {"--max-input", "9Gi"}).code, 2);
  EXPECT_EQ(plan("", {"--now", "yesterday"}).code, 2);
  EXPECT_EQ(plan(kNode, {"--explain", "nobody"}).code, 2);
}

TEST(PolicyOption, ReadsRules) {
  const auto policy =
      parse_policy("spread,spread@queue=web,pack@label:app.io/x=y,near@zone=a*7,near@rack=r1");
  ASSERT_TRUE(policy.ok());
  EXPECT_EQ(policy->packing, model::PlacementPolicy::Packing::kLeastAllocated);
  ASSERT_EQ(policy->classes.size(), 2u);
  EXPECT_TRUE(policy->classes[0].spread);
  EXPECT_EQ(policy->classes[0].queues, std::vector<std::string>{"web"});
  EXPECT_EQ(text::print_label_selector(policy->classes[1].selector), "app.io/x=y");
  ASSERT_EQ(policy->locality.size(), 2u);
  EXPECT_EQ(policy->locality[0].weight, 7);
  for (const char* bad : {"", "pack,", "spread@", "spread@queue", "pack@label:=x", "near@a",
                          "near@a=b*0", "near@a=b*x", "near@a=b c", "PACK"}) {
    EXPECT_FALSE(parse_policy(bad).ok()) << bad;
  }
}

// ---- exit codes ----

TEST_F(CommandTest, ExitCodes) {
  EXPECT_EQ(plan(kNode + pod("a", "1")).code, 0);
  EXPECT_EQ(plan(kNode + pod("a", "9")).code, 10);
  EXPECT_EQ(plan(kNode + pod("a", "9") + pod("b", "0.5")).code, 20);
}

TEST_F(CommandTest, NothingAtAllIsAnEmptyPlan) {
  const Outcome outcome = plan("");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(has(outcome.out, "No nodes"));
  EXPECT_TRUE(has(outcome.out, "Nothing to place"));
}

// ---- reading ----

TEST_F(CommandTest, EmptyFolder) {
  const Outcome outcome = run({"plan", "-f", folder_.string()});
  EXPECT_EQ(outcome.code, 20);
  EXPECT_TRUE(has(outcome.err, "holds no .yaml, .yml or .json file"));
  EXPECT_EQ(outcome.out, "");
}

TEST_F(CommandTest, MissingPath) {
  const Outcome outcome = run({"plan", "-f", path("nowhere.yaml")});
  EXPECT_EQ(outcome.code, 20);
  EXPECT_TRUE(has(outcome.err, "no such file or folder"));
}

TEST_F(CommandTest, FoldersAreReadSortedAndOnce) {
  write("b/pod.yaml", pod("a", "1"));
  write("a/node.yaml", kNode);
  write("a/notes.txt", "not a manifest");
  write("a/.hidden.yaml", "{broken");
  fs::create_directory_symlink(folder_, folder_ / "a" / "loop");
  const Outcome outcome =
      run({"plan", "-f", folder_.string(), "-f", path("a/node.yaml"), "-o", "json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_TRUE(has(outcome.out, "\"workloadsPlaced\": 1"));
}

TEST_F(CommandTest, AFileThatCannotBeParsedPlansNothing) {
  const std::string file = write("x.yaml", std::string(kNode) + "kind: Pod\n  bad: [\n");
  const Outcome table = run({"plan", "-f", file});
  EXPECT_EQ(table.code, 20);
  EXPECT_EQ(table.out, "");
  EXPECT_TRUE(has(table.err, "x.yaml:12")) << table.err;
  const Outcome json = run({"plan", "-f", file, "-o", "json"});
  EXPECT_EQ(json.code, 20);
  const auto tree = text::parse_json(json.out);
  ASSERT_TRUE(tree.ok());
  const text::Value* invalid = tree->root().find("invalid");
  ASSERT_NE(invalid, nullptr);
  ASSERT_EQ(invalid->size(), 1u);
  EXPECT_EQ(invalid->items()[0].find("document")->as_int64(), 2);
  EXPECT_EQ(invalid->items()[0].find("line")->as_int64(), 12);
  EXPECT_EQ(tree->root().find("placements")->size(), 0u);
}

TEST_F(CommandTest, BinaryFile) {
  const std::string file = write("x.yaml", std::string_view("kind: \0\1\2", 9));
  const Outcome outcome = run({"plan", "-f", file});
  EXPECT_EQ(outcome.code, 20);
  EXPECT_TRUE(has(outcome.err, "not a text file: byte 6 is zero")) << outcome.err;
}

TEST_F(CommandTest, NotUtf8) {
  EXPECT_EQ(run({"plan", "-f", write("x.yaml", "kind: \xff\xfe\n")}).code, 20);
}

TEST_F(CommandTest, AFileAboveTheLimitIsRefusedWithoutBeingRead) {
  const std::string file = write("big.yaml", "");
  fs::resize_file(file, std::uint64_t{200} << 20);  // sparse: takes no space and no time
  const Outcome outcome = run({"plan", "-f", file, "--max-input", "100Mi"});
  EXPECT_EQ(outcome.code, 20);
  EXPECT_TRUE(has(outcome.err, "larger than 100 MiB, which is the limit; --max-input raises it"))
      << outcome.err;
}

TEST_F(CommandTest, StandardInputIsBoundedToo) {
  const Outcome outcome = plan(std::string(4096, '#'), {"--max-input", "1Ki"});
  EXPECT_EQ(outcome.code, 20);
  EXPECT_TRUE(has(outcome.err, "larger than 1 KiB"));
}

TEST_F(CommandTest, TwoHundredMegabytesAreReadWithinTheLimit) {
  const std::string file = path("big.json");
  {
    std::ofstream out(file, std::ios::binary);
    out << R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"big"},"data":{"x":")";
    const std::string chunk(std::size_t{1} << 20, 'x');
    for (int i = 0; i < 200; ++i) out << chunk;
    out << "\"}}";
  }
  const Outcome outcome = run({"plan", "-f", file});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "Ignored: 1 object"));
  EXPECT_LT(outcome.out.size(), 1000u);
}

TEST_F(CommandTest, YamlBomb) {
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) bomb += (k == 0 ? "" : ",") + before;
    bomb += "]\n";
  }
  const Outcome outcome = plan(bomb);
  EXPECT_EQ(outcome.code, 20);
  EXPECT_TRUE(has(outcome.err, "(standard input)")) << outcome.err;
}

TEST_F(CommandTest, DeepNesting) {
  EXPECT_EQ(plan(std::string(100'000, '[')).code, 20);
  EXPECT_EQ(plan(std::string(100'000, '{')).code, 20);
}

TEST_F(CommandTest, JsonOnStandardInput) {
  const Outcome outcome = plan(R"({"apiVersion": "v1", "kind": "List", "items": []})");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

// ---- strange objects ----

TEST_F(CommandTest, HalfAGpuAsAResource) {
  const Outcome outcome = plan(kNode + pod("half", "0.5") + pod("one", "1"));
  EXPECT_EQ(outcome.code, 20);
  EXPECT_TRUE(has(outcome.out, "INVALID")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "Pod t/half")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "1 of 1 workload placed"));
}

TEST_F(CommandTest, NegativeAndHugeAmounts) {
  for (const char* amount : {"-1", "-9223372036854775808", "1e30", "99999999999999999999",
                             "9223372036854775807", "1e-99", "NaN", "", "0x10", "1Ei"}) {
    const Outcome outcome = plan(kNode + pod("odd", amount) + pod("fine", "1"), {"-o", "json"});
    EXPECT_TRUE(outcome.code == 20 || outcome.code == 10) << amount << ": " << outcome.code;
    EXPECT_TRUE(has(outcome.out, "\"t/fine\"")) << amount;
  }
}

TEST_F(CommandTest, AGangLargerThanTheCluster) {
  std::string text = kNode;
  text +=
      "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: g, namespace: "
      "t}\n"
      "spec: {minMember: 40}\n---\n";
  for (int i = 0; i < 40; ++i) {
    text += "apiVersion: v1\nkind: Pod\nmetadata: {name: g-" + std::to_string(i) +
            ", namespace: t, labels: {scheduling.x-k8s.io/pod-group: g}}\nspec:\n  containers:\n"
            "  - name: c\n    resources: {limits: {nvidia.com/gpu: 8}}\n---\n";
  }
  const Outcome outcome = plan(text);
  EXPECT_EQ(outcome.code, 10) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "t/g gang 40"));
  EXPECT_TRUE(has(outcome.out, "320  NeverFits"));
  EXPECT_TRUE(has(outcome.out, "0 of 1 workload placed"));
}

TEST_F(CommandTest, ACircleOfPodAffinities) {
  const auto near = [](const std::string& name, const std::string& other) {
    return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name +
           ", namespace: t, labels: {app: " + name +
           "}}\nspec:\n  affinity:\n    podAffinity:\n"
           "      requiredDuringSchedulingIgnoredDuringExecution:\n"
           "      - topologyKey: kubernetes.io/hostname\n        labelSelector: {matchLabels: "
           "{app: " +
           other + "}}\n  containers: [{name: c}]\n---\n";
  };
  const Outcome outcome = plan(kNode + near("a", "b") + near("b", "c") + near("c", "a"));
  EXPECT_EQ(outcome.code, 10);
  EXPECT_TRUE(has(outcome.out, "PodAffinityUnmet"));
  EXPECT_TRUE(has(outcome.out, "0 of 3 workloads placed"));
}

TEST_F(CommandTest, DuplicateNames) {
  const Outcome outcome = plan(kNode + pod("same", "1") + pod("same", "2"), {"-o", "json"});
  EXPECT_EQ(outcome.code, 20);
  EXPECT_TRUE(has(outcome.out, "\"podsPlaced\": 1"));
}

TEST_F(CommandTest, NoNodes) {
  const Outcome outcome = plan(pod("a", "1"));
  EXPECT_EQ(outcome.code, 10);
  EXPECT_TRUE(has(outcome.out, "NoNodes"));
}

TEST_F(CommandTest, ANodeWithoutGpus) {
  const Outcome outcome = plan(
      "apiVersion: v1\nkind: Node\nmetadata: {name: cpu}\nstatus:\n"
      "  allocatable: {cpu: 4, memory: 8Gi, pods: 10}\n  conditions: [{type: Ready, status: "
      "\"True\"}]\n---\n" +
      pod("a", "1"));
  EXPECT_EQ(outcome.code, 10);
  EXPECT_TRUE(has(outcome.out, "1 node, 0 GPUs")) << outcome.out;
}

TEST_F(CommandTest, NamesThatWouldControlTheTerminal) {
  const std::string evil = "x\\u001b[2J\\u202ey";
  const Outcome outcome =
      plan(kNode + pod(evil, "1") +
           "apiVersion: v1\nkind: \"K\\u001b[31m\"\nmetadata: {name: \"\\u0007\"}\n");
  for (const std::string* text : {&outcome.out, &outcome.err}) {
    EXPECT_EQ(text->find('\x1b'), std::string::npos);
    EXPECT_EQ(text->find('\x07'), std::string::npos);
    EXPECT_EQ(text->find("\u202e"), std::string::npos);
  }
  const Outcome explained = plan(kNode, {"--explain", "\x1b[2Jx"});
  EXPECT_EQ(explained.err.find('\x1b'), std::string::npos);
  const Outcome missing = run({"plan", "-f", "\x1b[2Jx"});
  EXPECT_EQ(missing.err.find('\x1b'), std::string::npos);
}

// ---- printing ----

std::string busy_cluster() {
  std::string text = kNode;
  for (int i = 0; i < 30; ++i) {
    text += pod("a-very-long-name-of-a-pod-that-somebody-generated-" + std::to_string(i), "1");
  }
  return text;
}

// Lines of a screen; the last one, a command to paste, is never cut.
std::vector<std::string> screen_lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("Why exactly")) out.push_back(line);
  }
  return out;
}

TEST_F(CommandTest, TheTableFitsTheScreenAndAddsUp) {
  const Outcome outcome = plan(busy_cluster());
  EXPECT_EQ(outcome.code, 10);
  for (const std::string& line : screen_lines(outcome.out)) EXPECT_LE(width_of(line), 80u) << line;
  EXPECT_LE(screen_lines(outcome.out).size(), 40u);
  EXPECT_TRUE(has(outcome.out, "+10 more (see -o json)")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "8 of 30 workloads placed; 8 of 8 GPUs used after this plan."));
}

TEST_F(CommandTest, TheExampleFitsTheScreenAndTheReadmeShowsIt) {
  const std::string root = BERTH_SOURCE_ROOT;
  const Outcome outcome = run({"plan", "-f", root + "/examples/team-cluster"});
  EXPECT_EQ(outcome.code, 10) << outcome.err;
  std::ifstream file(root + "/README.md");
  const std::string readme{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::vector<std::string> lines = screen_lines(outcome.out);
  EXPECT_LE(lines.size(), 39u);
  for (const std::string& line : lines) {
    EXPECT_LE(width_of(line), 80u) << line;
    EXPECT_TRUE(has(readme, line)) << "paste the output of make run into README.md: " << line;
  }
}

TEST_F(CommandTest, TheSameInputGivesTheSameBytes) {
  const std::string text = busy_cluster();
  for (const char* output : {"table", "json", "yaml"}) {
    // But for the command to paste, which has the time that was given.
    EXPECT_EQ(screen_lines(plan(text, {"-o", output}).out),
              screen_lines(plan(text, {"-o", output, "--now", "2031-01-01T00:00:00Z"}).out));
  }
}

TEST_F(CommandTest, YamlAndJsonAreOneTree) {
  const std::string text =
      busy_cluster() + pod("half", "0.5") + "kind: \"a\\tb: c\"\napiVersion: v1\n";
  const auto json = text::parse_json(plan(text, {"-o", "json"}).out);
  const auto yaml = text::parse_yaml(plan(text, {"-o", "yaml"}).out);
  ASSERT_TRUE(json.ok());
  ASSERT_TRUE(yaml.ok()) << yaml.error().to_string();
  ASSERT_EQ(yaml->size(), 1u);
  EXPECT_TRUE(text::equal(json->root(), yaml->front().root()));
}

TEST_F(CommandTest, WhatNeverFitsSaysOfWhatThereIsTooLittle) {
  const std::string one = kNode + asking("rdma/hca: 1");
  EXPECT_TRUE(has(plan(one).out, "1 rdma/hca (no node has any)")) << plan(one).out;
  const std::string cores = kNode + asking("cpu: 900");
  EXPECT_TRUE(has(plan(cores, {"--explain", "a"}).out, "900 cpu (the largest node has"))
      << plan(cores, {"--explain", "a"}).out;
}

TEST_F(CommandTest, APodOfAnUnknownNodeWaitsForIt) {
  const std::string text = kNode + pod("a", "1", "  nodeName: ghost\n");
  const Outcome found = plan(text);
  EXPECT_EQ(found.code, kExitWaits);
  EXPECT_TRUE(has(found.out, "NodeNameNotFound")) << found.out;
}

TEST_F(CommandTest, APodWithResourceClaimsIsNotSaidToBePlaced) {
  const std::string text =
      kNode + pod("a", "1", "  resourceClaims: [{name: gpu, resourceClaimName: x}]\n");
  const Outcome found = plan(text);
  EXPECT_EQ(found.code, kExitWaits);
  EXPECT_TRUE(has(found.out, "ResourceClaimNotRead")) << found.out;
}

TEST_F(CommandTest, ExplainIsTextOfOneWorkloadWithTheSameOptions) {
  const std::string text = kNode + pod("a", "9");
  EXPECT_EQ(plan(text, {"--explain", "a", "-o", "json"}).code, kExitUsage);
  EXPECT_EQ(plan(text, {"--explain", ""}).code, kExitUsage);
  const std::string file = write("c.yaml", text);
  const Outcome found = run({"plan", "-f", file, "--no-preemption", "--policy", "pack"});
  EXPECT_TRUE(has(found.out, "--explain t/a")) << found.out;
  const std::string wrong = text + pod("b", "-1");
  EXPECT_TRUE(has(plan(wrong, {"--explain", "b"}).out, "t/b cannot start")) << "and says why";
}

TEST_F(CommandTest, AMemberOfAWaitingGangIsFoundByItsName) {
  const std::string text =
      std::string(kNode) +
      "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: "
      "{name: g}\nspec: {minMember: 2}\n---\n" +
      "{apiVersion: v1, kind: Pod, metadata: {name: m-0, labels: "
      "{scheduling.x-k8s.io/pod-group: g}}, spec: {containers: [{name: c}]}}\n";
  EXPECT_TRUE(has(plan(text, {"--explain", "m-0"}).out, "1 member exists, 2 must start together"))
      << plan(text, {"--explain", "m-0"}).out;
}

TEST_F(CommandTest, ExplainsByNameAndByPod) {
  const std::string text = kNode + pod("big", "9") + pod("small", "1");
  EXPECT_TRUE(has(plan(text, {"--explain", "t/big"}).out, "t/big never fits"));
  EXPECT_TRUE(has(plan(text, {"--explain", "small"}).out, "t/small is placed"));
  EXPECT_EQ(plan(text, {"--explain", "t/big"}).code, 10);
}

// ---- words ----

TEST(Words, Amounts) {
  EXPECT_EQ(show_milli(0), "0");
  EXPECT_EQ(show_milli(500), "0.5");
  EXPECT_EQ(show_milli(26'250), "26.25");
  EXPECT_EQ(show_milli(999), "1");
  EXPECT_EQ(show_ranges({0, 1, 2, 4, 6, 7}), "0-2,4,6-7");
  EXPECT_EQ(show_ranges({0, 0, 0}), "0");
  EXPECT_EQ(short_model("NVIDIA-H100-80GB-HBM3"), "H100");
  EXPECT_EQ(short_key("topology.kubernetes.io/rack"), "rack");
  EXPECT_EQ(constraint_key(model::Constraint::kGpuModel), "gpuModel");
  EXPECT_EQ(constraint_key(model::Constraint::kPodAntiAffinity), "podAntiAffinity");
  EXPECT_EQ(constraint_key(model::Constraint::kNumaPolicy), "numaPolicy");
}

TEST_F(CommandTest, EveryCommandHasHelpThatNamesItsOptions) {
  const std::pair<const char*, const char*> commands[] = {
      {"plan", "--explain"}, {"up", "--demo"}, {"run", "--gpus"}, {"controller", "--webhook-url"}};
  for (const auto& [command, option] : commands) {
    const Outcome outcome = run({command, "--help"});
    EXPECT_EQ(outcome.code, 0) << command;
    EXPECT_NE(outcome.out.find(option), std::string::npos) << command;
    EXPECT_NE(outcome.out.find("Exit code: 0"), std::string::npos) << command;
    EXPECT_NE(run({"--help"}).out.find(command), std::string::npos);
  }
}

TEST_F(CommandTest, TheAgentNamesEachVariableThatItReads) {
  const std::string help = run({"agent", "--help"}).out;
  for (const char* name :
       {"NODE_NAME", "BERTH_SOURCE", "BERTH_KUBECONFIG", "BERTH_KUBELET_DIR", "BERTH_CDI_DIR",
        "BERTH_STATE_DIR", "BERTH_METRICS", "BERTH_HEALTH", "BERTH_HOST_ROOT", "BERTH_MIG_LAYOUT",
        "BERTH_MIG_CONFIG", "BERTH_HELPER"}) {
    EXPECT_NE(help.find(name), std::string::npos) << name;
  }
}

TEST_F(CommandTest, WrongOptionsOfClustersSayWhatIsWanted) {
  struct Case {
    std::vector<std::string> arguments;
    std::string says;
  };
  const std::string fleet = write("fleet.yaml", "pools: [{name: a, gpus: -1}]");
  const Case cases[] = {
      {{"up", "--gpus", "0"}, "--gpus"},
      {{"up", "--nodes", path("none.yaml")}, "none.yaml: No such file"},
      {{"up", "--nodes", fleet}, "pools[0].gpus"},
      {{"up", "--data", ""}, "--in-memory"},
      {{"up", "--port", "x"}, "--port"},
      {{"controller", "--kubeconfig", path("none")}, "none"},
      {{"controller", "--metrics", "here"}, "--metrics: found \"here\", want HOST:PORT"},
      {{"controller", "--webhook", ":9443"}, "--webhook-url and --webhook-service: want one"},
      {{"controller", "--webhook", ":9443", "--webhook-url", "http://a"},
       "--webhook-url: found \"http://a\", want https://"},
      {{"controller", "--webhook", ":9443", "--webhook-service", "a", "--webhook-key", "k"},
       "--webhook-cert and --webhook-key: found one of them"},
      {{"controller", "--webhook-url", "https://a"}, "--webhook-url: want --webhook HOST:PORT"},
      {{"controller", "--webhook-service", "a"}, "--webhook-service: want --webhook HOST:PORT"},
      {{"controller", "--webhook-cert", "c"}, "--webhook-cert: want --webhook HOST:PORT"},
      {{"controller", "--webhook-key", "k"}, "--webhook-key: want --webhook HOST:PORT"},
      {{"controller", "--refuse-bypasses"}, "--refuse-bypasses: want --webhook HOST:PORT"},
      {{"controller", "--health", ""}, "--health: found \"\", want HOST:PORT"},
      {{"controller", "--webhook", ""}, "--webhook: found \"\", want HOST:PORT"},
      {{"controller", "--page", ""}, "--page: found \"\", want HOST:PORT"},
      {{"controller", "--lease-namespace", "A b"}, "--lease-namespace: found \"A b\", want"},
      {{"controller", "--lease-namespace", ""}, "--lease-namespace: found \"\", want"},
      {{"agent", "--health", ""}, "--health: found \"\", want HOST:PORT"},
      {{"controller", "--policy", "wild"}, "policy"},
  };
  for (const Case& c : cases) {
    const Outcome outcome = run(c.arguments);
    EXPECT_EQ(outcome.code, 2) << c.says;
    EXPECT_NE(outcome.err.find(c.says), std::string::npos) << c.says << "\n" << outcome.err;
  }
}

}  // namespace
}  // namespace berth::app
