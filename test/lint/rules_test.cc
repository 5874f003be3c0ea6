// Every rule finds what it is for, leaves the rest alone, and what it corrects stays corrected.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "lint/cases.h"
#include "text/json.h"

namespace berth::lint_test {
namespace {

TEST(LintRules, EveryRuleHasACaseAndAParagraph) {
  // These need two files: below.
  std::set<std::string, std::less<>> tested = {"mig-strategy", "mig-strategy-differs"};
  for (const Case& one : cases()) tested.insert(one.rule);
  const std::string page = read_text(BERTH_SOURCE_ROOT "/docs/lint.md");
  std::string_view last;
  for (const lint::Rule& rule : lint::rules()) {
    EXPECT_TRUE(tested.contains(rule.id)) << rule.id << " has no file in test/lint/rules";
    EXPECT_NE(page.find("### " + std::string(rule.id)), std::string::npos)
        << rule.id << " is not in docs/lint.md";
    EXPECT_LT(last, rule.id) << "rules are sorted";
    last = rule.id;
  }
  for (const std::string& rule : tested) EXPECT_NE(lint::find_rule(rule), nullptr) << rule;
}

TEST(LintRules, FindWhatIsWrongAndNothingElse) {
  for (const Case& one : cases()) {
    const lint::Report bad = lint::lint({one.bad}, &schemas());
    EXPECT_TRUE(bad.unreadable.empty()) << one.file;
    EXPECT_GE(count_rule(bad, one.rule), 1u) << one.file << "\n" << words_of(bad.findings);
    const lint::Report good = lint::lint({one.good}, &schemas());
    EXPECT_TRUE(good.unreadable.empty()) << one.file;
    EXPECT_EQ(count_rule(good, one.rule), 0u) << one.file << "\n" << words_of(good.findings);
    for (const lint::Finding& finding : bad.findings) {
      EXPECT_GT(finding.line, 0) << one.file;
      EXPECT_FALSE(finding.what.empty() || finding.why.empty() || finding.fix.empty()) << one.file;
    }
  }
}

// The first correction moves what comes after it; people look into the file that they gave.
TEST(LintRules, CorrectionsNameTheLinesOfTheFileThatWasGiven) {
  const lint::File file = {"a.yaml",
                           "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\n"
                           "spec:\n  pytorchReplicaSpecs:\n    Worker:\n      replicas: 2\n"
                           "      template:\n        spec:\n          containers:\n"
                           "          - name: pytorch\n            image: i:1\n"
                           "            command: [torchrun, x.py]\n            env:\n"
                           "            - name: MASTER_ADDR\n              value: a\n"
                           "            - name: MASTER_PORT\n              value: '1'\n"
                           "            - name: OWN\n              value: x\n"};
  const auto made = lint::convert(file, &schemas());
  ASSERT_TRUE(made.ok());
  ASSERT_EQ(made->done.size(), 2u) << words_of(made->done);
  EXPECT_EQ(made->done[0].line, 15);
  EXPECT_EQ(made->done[1].line, 17);
  EXPECT_TRUE(made->done[1].field.ends_with("env[1]")) << made->done[1].field;
  EXPECT_NE(made->bytes.find("OWN"), std::string::npos);
}

TEST(LintRules, WhatIsConvertedIsRightAndStaysSo) {
  std::size_t converted = 0;
  for (const Case& one : cases()) {
    const lint::Report before = lint::lint({one.bad}, &schemas());
    bool has_edit = false;
    for (const lint::Finding& finding : before.findings) {
      has_edit = has_edit || (finding.rule == one.rule && finding.edit.has_value());
    }
    const auto made = lint::convert(one.bad, &schemas());
    ASSERT_TRUE(made.ok()) << one.file;
    if (has_edit) {
      ++converted;
      const lint::Report after = lint::lint({{one.bad.name, made->bytes}}, &schemas());
      EXPECT_EQ(count_rule(after, one.rule), 0u) << one.file << "\n" << made->bytes;
    }
    const auto again = lint::convert({one.bad.name, made->bytes}, &schemas());
    ASSERT_TRUE(again.ok()) << one.file;
    EXPECT_EQ(again->bytes, made->bytes) << one.file;
    // A correction keeps the comments of the lines it does not take away.
    if (one.rule == "karpenter-expire-after" || one.rule == "workload-priority-spec" ||
        one.rule == "plugin-sharing" || one.rule == "dra-request-exactly") {
      std::istringstream lines(one.bad.bytes);
      for (std::string line; std::getline(lines, line);) {
        const std::size_t at = line.find('#');
        if (at == std::string::npos) continue;
        EXPECT_NE(made->bytes.find(line.substr(at)), std::string::npos) << one.file << line;
      }
    }
  }
  EXPECT_GE(converted, 40u);
}

TEST(LintRules, ScriptsAndManifestsAreReadTogether) {
  const lint::File script{"a.sh", "helm install g nvidia/gpu-operator --set mig.strategy=single\n"};
  const lint::File mixed{"b.sh", "helm install g nvidia/gpu-operator --set mig.strategy=mixed\n"};
  const lint::File pod{
      "p.yaml",
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n"
      "    - {name: c, image: i, resources: {limits: {nvidia.com/mig-1g.10gb: 1}}}\n"};
  EXPECT_EQ(count_rule(lint::lint({script, pod}, nullptr), "mig-strategy"), 1u);
  EXPECT_EQ(count_rule(lint::lint({script, mixed, pod}, nullptr), "mig-strategy"), 0u);
  EXPECT_EQ(count_rule(lint::lint({pod}, nullptr), "mig-strategy"), 0u);
  EXPECT_EQ(count_rule(lint::lint({script, mixed}, nullptr), "mig-strategy-differs"), 1u);
  EXPECT_EQ(count_rule(lint::lint({script, script}, nullptr), "mig-strategy-differs"), 0u);
  // Helm values and a ClusterPolicy say it as well as a script does.
  const lint::File values{"v.yaml", "mig: {strategy: single}\nmigManager: {enabled: true}\n"};
  EXPECT_EQ(count_rule(lint::lint({values, pod}, nullptr), "mig-strategy"), 1u);
}

TEST(LintRules, TaintsOfScriptsCount) {
  const lint::File taint{"t.sh", "kubectl taint nodes -l a=b nvidia.com/gpu=present:NoSchedule\n"};
  const lint::File pool{"p.sh",
                        "gcloud container node-pools create x "
                        "--node-taints=a=b:NoExecute,nvidia.com/gpu=true:NoSchedule\n"};
  const lint::File pod{"p.yaml",
                       "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n"
                       "    - {name: c, image: i, resources: {limits: {nvidia.com/gpu: 1}}}\n"};
  const lint::File served{"s.yaml",
                          "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\n"
                          "metadata: {name: s}\nspec:\n  predictor:\n    model:\n"
                          "      modelFormat: {name: pytorch}\n"
                          "      resources: {limits: {nvidia.com/gpu: 1}}\n"};
  EXPECT_EQ(count_rule(lint::lint({taint, pod, served}, nullptr), "gpu-toleration"), 2u);
  const lint::Report both = lint::lint({taint, pool}, nullptr);
  ASSERT_EQ(count_rule(both, "gpu-taint-values"), 1u) << words_of(both.findings);
  EXPECT_EQ(both.findings[0].file, "p.sh");
}

// The host's files are out under both standards, whatever the security context says.
TEST(LintRules, HostPathsAreRefused) {
  for (const std::string level : {"baseline", "restricted"}) {
    const std::string text =
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: t, labels: "
        "{pod-security.kubernetes.io/enforce: " +
        level +
        "}}\n---\n"
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: t}\nspec:\n"
        "  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}\n"
        "  containers:\n    - name: c\n      image: i\n      securityContext:\n"
        "        {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}\n";
    const std::string host = "  volumes: [{name: w, hostPath: {path: /w}}]\n";
    EXPECT_EQ(count_rule(lint::lint({{"a.yaml", text}}, nullptr), "pod-security"), 0u) << level;
    EXPECT_EQ(count_rule(lint::lint({{"a.yaml", text + host}}, nullptr), "pod-security"), 1u)
        << level;
  }
}

// What a file does not import it cannot use, and what it binds in any way it can.
TEST(LintRules, NamesOfPython) {
  const auto undefined = [](const std::string& text) {
    std::string out;
    for (const lint::Finding& one : lint::lint({{"a.py", text}}, nullptr).findings) {
      if (one.rule == "python-undefined") out += one.what.substr(one.what.rfind(' ') + 1) + " ";
    }
    return out;
  };
  EXPECT_EQ(undefined("import a.b as c\nc.x(); a.y()\n"), "a ");
  EXPECT_EQ(undefined("import a.b, d\na.y(); d.z(); b\n"), "b ");
  EXPECT_EQ(undefined("from a.b import c as e, f\ne; f; c\n"), "c ");
  EXPECT_EQ(undefined("from a import *\nanything()\n"), "");
  EXPECT_EQ(undefined("def f(x, *args, y: int = z, **more):\n  return x, args, y, more\n"), "z ");
  EXPECT_EQ(undefined("for i, (j, k) in q: print(i, j, k)\n"), "q ");
  EXPECT_EQ(undefined("v = [n for n in (1, 2) if n > m]\nf = lambda p, r=2: p + r + s\n"), "m s ");
  EXPECT_EQ(undefined("with open('x') as (a, b): a; b\ntry: pass\nexcept ValueError as e: e\n"),
            "");
  EXPECT_EQ(undefined("t[i], u.v = 1, 2\nw = x = 3\nw; x\n"), "t i u ");
  EXPECT_EQ(undefined("# name\n'name' + f\"{name}\" + g(name=1)\n"), "g ");
  EXPECT_EQ(undefined(R"('\n' + "\w\"x" + r'\d' + b'it\'s')"), "");
  EXPECT_EQ(undefined("globals().update({'a': 1})\na\n"), "");
  EXPECT_EQ(undefined("while (line := next(s)): line\nclass C(D): pass\n"), "s D ");
  EXPECT_EQ(undefined("match v:\n  case {'a': x}: x\n"), "v ");
  EXPECT_EQ(undefined("x: int\ny: list[T] = []\nx; y\n"), "T ");
}

TEST(LintRules, BadInputIsToldApartFromFindings) {
  for (const std::string text :
       {"a: [", "a: 1\na: 2\n", "\xff\xfe", "just words", "a: *nobody\n"}) {
    const lint::Report report = lint::lint({{"x.yaml", text}}, &schemas());
    EXPECT_EQ(report.unreadable.size(), 1u) << text;
    EXPECT_TRUE(report.findings.empty()) << text;
    EXPECT_FALSE(lint::convert({"x.yaml", text}, &schemas()).ok()) << text;
  }
  EXPECT_TRUE(lint::lint({{"x.yaml", ""}}, &schemas()).unreadable.empty());
}

TEST(LintRules, LinesAreThoseOfTheFile) {
  const std::string text =
      "# one\n---\napiVersion: v1\nkind: Node\nmetadata: {name: n}\n---\n# six\n"
      "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata:\n  name: q\nspec:\n"
      "  weight: 1\n  preemptable: true\n";
  const lint::Report report = lint::lint({{"x.yaml", text}}, &schemas());
  ASSERT_EQ(report.findings.size(), 1u) << words_of(report.findings);
  EXPECT_EQ(report.findings[0].line, 14);
  EXPECT_EQ(report.findings[0].column, 3);
  EXPECT_EQ(report.findings[0].document, 2);
  EXPECT_EQ(report.findings[0].object, "Queue q");
  EXPECT_EQ(report.findings[0].field, "spec.preemptable");
}

TEST(LintRules, ItemsOfListsAreObjects) {
  const lint::File list{"x.yaml",
                        "apiVersion: v1\nkind: List\nitems:\n"
                        "  - apiVersion: scheduling.volcano.sh/v1beta1\n    kind: Queue\n"
                        "    metadata: {name: q}\n    spec:\n      weight: 1\n"
                        "      preemptable: true # no\n"};
  const lint::Report report = lint::lint({list}, &schemas());
  ASSERT_EQ(report.findings.size(), 1u) << words_of(report.findings);
  EXPECT_EQ(report.findings[0].line, 9);
  const auto made = lint::convert(list, &schemas());
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->bytes.find("preemptable"), std::string::npos);
  EXPECT_TRUE(made->left.empty());
}

}  // namespace
}  // namespace berth::lint_test
