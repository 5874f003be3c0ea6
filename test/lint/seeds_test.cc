// Manifests that people published, with what is known to be wrong with each: index.yaml of the
// folder says which have corrected versions and which are valid. The folder is not part of the
// tree.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "lint/cases.h"
#include "text/yaml.h"

namespace berth::lint_test {
namespace {

namespace fs = std::filesystem;

std::string seed_folder() {
  const char* given = std::getenv("BERTH_SEED_MANIFESTS");
  return given != nullptr ? given : BERTH_SOURCE_ROOT "/../shared/seed-manifests";
}

bool skipped() {
  if (fs::exists(seed_folder() + "/index.yaml")) return false;
  std::fprintf(
      stderr,
      "\n*** SKIPPED: no %s/index.yaml; set BERTH_SEED_MANIFESTS to the folder of published "
      "manifests ***\n\n",
      seed_folder().c_str());
  return true;
}

// What must be found in each file that is not valid as it is; the id is the file's number.
const std::map<std::string, std::set<std::string>>& known_errors() {
  static const std::map<std::string, std::set<std::string>> table = {
      {"01",
       {"dra-template-spec", "dra-request-exactly", "dra-cel-capacity", "dra-cel-product",
        "dra-claim-unused"}},
      {"03", {"rdma-prefix"}},
      {"11", {"helm-image-tag", "helm-value"}},
      {"12", {"kubelet-topology-memory"}},
      {"13", {"object-name", "node-label-by-hand"}},
      {"14", {"api-deprecated"}},
      {"15", {"kueue-namespace-selector", "api-deprecated"}},
      {"16", {"kueue-nobody-joins", "api-deprecated"}},
      {"17", {"workload-priority-spec", "api-deprecated"}},
      {"18", {"volcano-group-unjoined"}},
      {"19", {"volcano-queue-field"}},
      {"20", {"helm-value"}},
      {"22", {"mig-needs-mixed"}},
      {"23", {"plugin-sharing"}},
      {"24", {"helm-value"}},
      {"25", {"plugin-sharing", "plugin-config-namespace"}},
      {"26", {"eksctl-flag", "eksctl-from-zero"}},
      {"28", {"field-missing"}},
      {"29", {"expander-priority-order"}},
      {"30",
       {"api-removed", "karpenter-node-class", "karpenter-consolidation", "karpenter-expire-after",
        "karpenter-consolidate-after"}},
      {"31", {"api-removed", "karpenter-node-class"}},
      {"32", {"dcgm-metric-name", "adapter-query"}},
      {"33", {"dcgm-metric-name", "promql-join", "pod-labels-allowlist", "prometheus-rule-label"}},
      {"34", {"comment-threshold"}},
      {"35", {"keda-no-auth", "comment-threshold"}},
      {"36", {"nccl-topology-file", "nccl-ucx-env"}},
      {"37",
       {"mpirun-root", "mpirun-option", "mpi-worker-sshd", "mpi-nccl-tests", "mpi-topology-file"}},
      {"38", {"kueue-queue-name", "job-env-overridden", "torch-processes"}},
      {"39", {"python-undefined", "torch-local-rank", "torch-zero-grad"}},
      {"40", {"python-undefined", "s3-pagination"}},
      {"42", {"torch-save-s3", "fsdp-state-dict", "python-undefined"}},
      {"44", {"api-version"}},
      {"45", {"workload-priority-spec", "api-deprecated"}},
      {"46", {"quota-scope-misses"}},
      {"48", {"dcgm-metric-name", "gpu-memory-ratio"}},
      {"49",
       {"dcgm-metric-name", "gpu-memory-ratio", "rate-of-gauge", "nvlink-stall",
        "prometheus-rule-label"}},
      {"50", {"dcgm-metric-name", "gpu-memory-ratio", "promql-histogram", "promql-join"}},
      {"51", {"download-into-cron"}},
      {"52", {"quota-scope-resource", "quota-device-limit"}},
      {"54", {"network-no-dns", "network-own-pods"}},
      {"55", {"helm-value"}},
      {"58",
       {"kfp-gpu-limit", "kfp-toleration", "kfp-condition", "kfp-kubectl-apply",
        "python-undefined"}},
      {"59", {"argo-with-param", "argo-not-queued"}},
      {"60",
       {"tekton-task-field", "api-deprecated", "tekton-empty-dir", "tekton-clone-workspace",
        "tekton-always-deploys"}},
      {"74", {"anti-affinity-preferred"}},
      {"76", {"mig-layout-strategy"}},
  };
  return table;
}

std::vector<lint::File> files_of(const std::string& folder) {
  std::vector<lint::File> out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name == "index.yaml") continue;
    const std::string ending = entry.path().extension().string();
    if (ending != ".yaml" && ending != ".sh" && ending != ".promql" && ending != ".py") continue;
    out.push_back({name, read_text(entry.path().string())});
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return out;
}

TEST(LintSeeds, EveryKnownErrorIsFoundAndNothingElse) {
  if (skipped()) GTEST_SKIP();
  const std::vector<lint::File> files = files_of(seed_folder());
  EXPECT_GE(files.size(), 55u);
  for (const lint::File& file : files) {
    const lint::Report report = lint::lint({file}, &schemas());
    EXPECT_TRUE(report.unreadable.empty()) << file.name;
    std::set<std::string> found;
    for (const lint::Finding& finding : report.findings) found.insert(finding.rule);
    const auto known = known_errors().find(file.name.substr(0, 2));
    EXPECT_EQ(found, known == known_errors().end() ? std::set<std::string>() : known->second)
        << file.name << "\n"
        << words_of(report.findings);
  }
}

TEST(LintSeeds, WhatTheIndexCallsInvalidIsAnError) {
  if (skipped()) GTEST_SKIP();
  const auto index = text::parse_yaml(read_text(seed_folder() + "/index.yaml"));
  ASSERT_TRUE(index.ok() && !index->empty());
  std::size_t wrong = 0;
  for (const text::Value& row : index->front().root().items()) {
    const std::string file(row.find("file")->string());
    bool invalid = false;
    for (const text::Value& line : row.find("schema")->items()) {
      invalid = invalid || line.string().find(": ERR") != std::string_view::npos;
    }
    const text::Value* status = row.find("status");
    const std::string_view said = status == nullptr ? std::string_view() : status->string();
    invalid = invalid || said.find("INVALID") != std::string_view::npos;
    if (!invalid) continue;
    ++wrong;
    const lint::Report report =
        lint::lint({{file, read_text(seed_folder() + "/" + file)}}, &schemas());
    EXPECT_TRUE(std::any_of(report.findings.begin(), report.findings.end(), [](const auto& one) {
      return one.severity == lint::Severity::kError;
    })) << file;
  }
  EXPECT_GE(wrong, 12u);
}

TEST(LintSeeds, CorrectedOnesAreClean) {
  if (skipped()) GTEST_SKIP();
  const std::vector<lint::File> files = files_of(seed_folder() + "/fixed");
  EXPECT_GE(files.size(), 19u);
  for (const lint::File& file : files) {
    const lint::Report report = lint::lint({file}, &schemas());
    EXPECT_EQ(words_of(report.findings), "") << file.name;
  }
  const lint::Report together = lint::lint(files, &schemas());
  EXPECT_EQ(words_of(together.findings), "");
}

TEST(LintSeeds, ConvertingLeavesNothingThatItCanCorrect) {
  if (skipped()) GTEST_SKIP();
  for (const lint::File& file : files_of(seed_folder())) {
    const auto made = lint::convert(file, &schemas());
    ASSERT_TRUE(made.ok()) << file.name;
    for (const lint::Finding& left : made->left) {
      EXPECT_FALSE(left.edit.has_value()) << file.name << "\n" << words_of({left});
    }
    const auto again = lint::convert({file.name, made->bytes}, &schemas());
    ASSERT_TRUE(again.ok()) << file.name;
    EXPECT_EQ(again->bytes, made->bytes) << file.name;
    EXPECT_TRUE(lint::lint({{file.name, made->bytes}}, &schemas()).unreadable.empty()) << file.name;
    // Comments that have a line of their own stay, in their order.
    std::size_t at = 0;
    std::istringstream lines(file.bytes);
    for (std::string line; std::getline(lines, line);) {
      const std::size_t first = line.find_first_not_of(' ');
      if (first == std::string::npos || line[first] != '#') continue;
      const std::size_t found = made->bytes.find(line.substr(first), at);
      ASSERT_NE(found, std::string::npos) << file.name << ": " << line;
      at = found + 1;
    }
  }
}

// Together they contradict one another.
TEST(LintSeeds, ContradictionsBetweenFilesAreFound) {
  if (skipped()) GTEST_SKIP();
  const lint::Report report = lint::lint(files_of(seed_folder()), &schemas());
  for (const char* rule : {"two-autoscalers", "pod-security", "quota-priority-class",
                           "reference-missing", "gpu-toleration", "gpu-taint-values",
                           "queue-name-shared", "mig-strategy-differs", "kueue-reference"}) {
    EXPECT_GE(count_rule(report, rule), 1u) << rule;
  }
}

}  // namespace
}  // namespace berth::lint_test
