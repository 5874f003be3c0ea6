// berth lint and berth convert as people call them.
#include "app/lint/lint_command.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/lint/line_diff.h"
#include "text/json.h"

namespace berth::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOldClass =
    "# of the team\napiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\n"
    "metadata: {name: high} # name\nspec:\n  value: 100 # high\n";
constexpr const char* kNewClass =
    "# of the team\napiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\n"
    "metadata: {name: high} # name\nvalue: 100 # high\n";

struct LintOutcome {
  int code = 0;
  std::string out, err;
};

class LintCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::temp_directory_path() / (std::string("berth-lint-test-") +
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, std::string_view bytes) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  static std::string read(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  static LintOutcome run(const std::vector<std::string>& arguments, const std::string& input = "") {
    std::istringstream in(input);
    std::ostringstream out, err;
    FakeClock clock(0);
    Terminal terminal{.in = in, .out = out, .err = err, .wall = clock, .monotonic = clock};
    LintOutcome outcome;
    outcome.code = run_command(arguments, terminal);
    outcome.out = out.str();
    outcome.err = err.str();
    return outcome;
  }

  fs::path folder_;
};

TEST_F(LintCommandTest, ExitCodesSayWhatWasFound) {
  const std::string bad = write("bad.yaml", kOldClass);
  const std::string good = write("good.yaml", kNewClass);
  EXPECT_EQ(run({"lint", good}).code, 0);
  const LintOutcome found = run({"lint", bad, good});
  EXPECT_EQ(found.code, 1);
  EXPECT_NE(found.out.find("bad.yaml:5: error: "), std::string::npos) << found.out;
  EXPECT_NE(found.out.find("[workload-priority-spec]"), std::string::npos);
  EXPECT_NE(found.out.find("2 files: 1 error, 0 warnings"), std::string::npos);
  EXPECT_EQ(run({"lint", folder_.string()}).code, 1);
  EXPECT_EQ(run({"lint", "-"}, kOldClass).code, 1);
  EXPECT_EQ(run({"lint", "-"}, "a: [").code, 20);
  EXPECT_EQ(run({"lint", (folder_ / "none").string()}).code, 20);
  EXPECT_EQ(run({"lint"}).code, 2);
  EXPECT_EQ(run({"lint", "-o", "xml", good}).code, 2);
  EXPECT_EQ(run({"lint", "--max-input", "10", good}).code, 20);
  EXPECT_EQ(run({"lint", "--rules"}).code, 0);
}

TEST_F(LintCommandTest, WarningsCountOnlyWhenStrict) {
  const std::string old = write(
      "flavor.yaml",
      "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ResourceFlavor\nmetadata: {name: f}\nspec: {}\n");
  EXPECT_EQ(run({"lint", old}).code, 0);
  EXPECT_EQ(run({"lint", "--strict", old}).code, 1);
}

TEST_F(LintCommandTest, JsonHoldsWhatPeopleSee) {
  const LintOutcome found = run({"lint", "-o", "json", "-"}, kOldClass);
  const auto json = text::parse_json(found.out);
  ASSERT_TRUE(json.ok()) << found.out;
  EXPECT_EQ(json->root().find("errors")->as_int64(), 1);
  const text::Value& finding = json->root().find("findings")->items()[0];
  EXPECT_EQ(finding.find("rule")->string(), "workload-priority-spec");
  EXPECT_EQ(finding.find("line")->as_int64(), 5);
  EXPECT_TRUE(finding.find("convertible")->as_bool());
}

TEST_F(LintCommandTest, NamesCannotMoveTheCursor) {
  const LintOutcome found =
      run({"lint", "-"}, "apiVersion: v1\nkind: \"Pod\\e[2J\"\nmetadata: {labels: {a: b}}\n");
  EXPECT_EQ(found.out.find('\x1b'), std::string::npos);
}

TEST_F(LintCommandTest, ConvertWritesTheCorrectedManifest) {
  const std::string bad = write("bad.yaml", kOldClass);
  const LintOutcome shown = run({"convert", bad});
  EXPECT_EQ(shown.code, 0);
  EXPECT_EQ(shown.out, kNewClass);
  EXPECT_NE(shown.err.find("corrected"), std::string::npos);
  EXPECT_EQ(read(bad), kOldClass) << "only --in-place changes it";
  EXPECT_EQ(run({"convert", "-"}, kOldClass).out, kNewClass);
  const std::string copy = (folder_ / "copy.yaml").string();
  EXPECT_EQ(run({"convert", bad, "-o", copy}).code, 0);
  EXPECT_EQ(read(copy), kNewClass);
  const LintOutcome diff = run({"convert", "--diff", bad});
  EXPECT_NE(diff.out.find("-spec:\n-  value: 100 # high\n+value: 100 # high\n"), std::string::npos)
      << diff.out;
  fs::permissions(bad, fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
  EXPECT_EQ(run({"convert", "--in-place", bad}).code, 0);
  EXPECT_EQ(read(bad), kNewClass);
  EXPECT_EQ(fs::status(bad).permissions(),
            fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
  EXPECT_EQ(run({"convert", "--in-place", bad}).err, "");
}

TEST_F(LintCommandTest, ConvertWritesNothingOfWhatItCannotRead) {
  const std::string bad = write("bad.yaml", "a: [\n");
  EXPECT_EQ(run({"convert", "--in-place", bad}).code, 20);
  EXPECT_EQ(read(bad), "a: [\n");
  const std::string out = (folder_ / "out.yaml").string();
  EXPECT_EQ(run({"convert", bad, "-o", out}).code, 20);
  EXPECT_FALSE(fs::exists(out));
  EXPECT_EQ(run({"convert", "--in-place", "-"}).code, 2);
  EXPECT_EQ(run({"convert", folder_.string()}).code, 2);
}

TEST(LineDiff, ShowsChangesWithTheirNeighbours) {
  EXPECT_EQ(line_diff("a\n", "a\n", "f"), "");
  EXPECT_EQ(line_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", "f"),
            "--- f\n+++ f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
  EXPECT_EQ(line_diff("a\n", "a\nb\n", "f"), "--- f\n+++ f\n@@ -1,1 +1,2 @@\n a\n+b\n");
}

}  // namespace
}  // namespace berth::app
