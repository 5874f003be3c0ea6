// The readers of lint: scripts, queries, paths. Its rules are tested in test/lint.
#include "people/lint/lint.h"

#include <gtest/gtest.h>

#include "people/lint/checks.h"
#include "people/lint/shell.h"
#include "text/nearest.h"
#include "text/yaml.h"

namespace berth::lint {
namespace {

std::string words(std::string_view script) {
  std::string out;
  for (const ShellCommand& command : shell_commands(script)) {
    for (const ShellWord& word : command) out += "[" + word.text + "]";
    out += "\n";
  }
  return out;
}

TEST(Shell, WordsOfCommands) {
  EXPECT_EQ(words("helm install a \\\n  --set x='1 2' # c\n"),
            "[helm][install][a][--set][x=1 2]\n");
  EXPECT_EQ(words("a;b && c | d\n# e\n"), "[a]\n[b]\n[c]\n[d]\n");
  EXPECT_EQ(words("a \"b \\\" $c\" d\\ e"), "[a][b \" $c][d e]\n");
  EXPECT_EQ(words("cat <<EOF > x\nhelm install y\nEOF\nz\n"), "[cat][>][x]\n[z]\n");
  EXPECT_EQ(words("a $(b | c) d\n"), "[a][$(b | c)][d]\n");
  EXPECT_EQ(words("'open"), "[open]\n");
  EXPECT_EQ(words(""), "");
}

TEST(Shell, WordsKnowWhereTheyStand) {
  const std::string_view script = "ab 'c d'\n";
  const auto commands = shell_commands(script);
  ASSERT_EQ(commands.size(), 1u);
  EXPECT_EQ(script.substr(commands[0][1].begin, commands[0][1].end - commands[0][1].begin),
            "'c d'");
}

std::string rules_in(std::string_view query) {
  std::string out;
  for (const QueryFinding& one : check_query(query)) {
    out += (out.empty() ? "" : " ") + std::string(one.rule);
  }
  return out;
}

TEST(Query, NamesAreMetricsOnlyWhereMetricsStand) {
  EXPECT_EQ(rules_in("dcgm_fb_used"), "dcgm-metric-name");
  EXPECT_EQ(rules_in("sum by (dcgm_fb_used) (up)"), "");
  EXPECT_EQ(rules_in("up{dcgm_fb_used=\"dcgm_fb_used\"}"), "");
  EXPECT_EQ(rules_in("# dcgm_fb_used\nup"), "");
  EXPECT_EQ(rules_in("label_replace(up, \"dcgm_fb_used\", \"$1\", \"a\", \"b\")"), "");
}

TEST(Query, RatiosOfMemory) {
  EXPECT_EQ(rules_in("DCGM_FI_DEV_FB_USED{a=\"b\"} / DCGM_FI_DEV_FB_FREE{a=\"b\"}"),
            "gpu-memory-ratio");
  EXPECT_EQ(rules_in("(DCGM_FI_DEV_FB_FREE - DCGM_FI_DEV_FB_USED) / DCGM_FI_DEV_FB_FREE"),
            "gpu-memory-ratio");
  EXPECT_EQ(rules_in("DCGM_FI_DEV_FB_USED / (DCGM_FI_DEV_FB_FREE + DCGM_FI_DEV_FB_USED)"), "");
  EXPECT_EQ(rules_in("DCGM_FI_DEV_FB_FREE / (DCGM_FI_DEV_FB_FREE + DCGM_FI_DEV_FB_USED)"), "");
}

TEST(Query, CorrectionsGiveAQueryThatIsRight) {
  const std::string query = "rate(dcgm_fb_used[5m]) > 0 and dcgm_fb_used / dcgm_fb_free > 0.95\n";
  const auto made = convert({"a.promql", query}, nullptr);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->bytes,
            "deriv(DCGM_FI_DEV_FB_USED[5m]) > 0 and DCGM_FI_DEV_FB_USED / (DCGM_FI_DEV_FB_USED + "
            "DCGM_FI_DEV_FB_FREE) > 0.95\n");
  EXPECT_TRUE(made->left.empty());
}

TEST(Place, AbsentPlacesHavePathsAndNothingElse) {
  const auto read = text::parse_yaml("a: {b: [1, {c: d}]}\n");
  ASSERT_TRUE(read.ok());
  const Place root(read->front().root(), {});
  EXPECT_TRUE(root["a"]["b"][1]["c"].is("d"));
  const Place none = root["a"]["x"]["y"][3];
  EXPECT_FALSE(none);
  EXPECT_EQ(field_of(none.path(), root.value()), "a.x.y.3");
  EXPECT_EQ(field_of(root["a"]["b"][1]["c"].path(), root.value()), "a.b[1].c");
  EXPECT_EQ(field_of({"a", "x.y/z"}, root.value()), "a[x.y/z]");
}

TEST(Distance, CountsEdits) {
  EXPECT_EQ(text::edits_between("replicas", "replicas", 3), 0u);
  EXPECT_EQ(text::edits_between("replica", "replicas", 3), 1u);
  EXPECT_EQ(text::edits_between("abc", "xyz", 1), 2u) << "no more than the limit and one";
}

TEST(Values, OfTheOperatorsChart) {
  EXPECT_FALSE(gpu_operator_value("driver.version", "580.82.07"));
  EXPECT_FALSE(gpu_operator_value("dcgmExporter.serviceMonitor.enabled", "true"));
  ASSERT_TRUE(gpu_operator_value("mig.config", "x"));
  EXPECT_EQ(gpu_operator_value("mig.config", "x")->rename, "migManager.config.default");
  EXPECT_TRUE(gpu_operator_value("mps.replicas", "8"));
  EXPECT_TRUE(gpu_operator_value("migManger.enabled", "true"));
  EXPECT_EQ(gpu_operator_value("toolkit.version", "1.17.4")->rule, "helm-image-tag");
}

}  // namespace
}  // namespace berth::lint
