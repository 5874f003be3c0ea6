// Runs every rule over the tree. The program is given the root by BERTH_SOURCE_ROOT.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "rules.h"

namespace berth::tidy {
namespace {

namespace fs = std::filesystem;

const std::set<std::string> kSkippedFolders = {".git",         "build", "berth-data",
                                               "node_modules", "dist",  "__pycache__"};
// Recorded inputs are data: nobody formats or finishes them.
const std::set<std::string> kSkippedPaths = {"test/fuzz/corpus"};
const std::set<std::string> kExtensions = {".cc", ".h",  ".md",  ".cmake", ".txt", ".json",
                                           ".sh", ".ts", ".tsx", ".yaml",  ".yml", ".scn"};

bool is_read(const fs::path& relative) {
  if (kExtensions.contains(relative.extension().string())) return true;
  std::string top = relative.begin()->string();  // scripts have no extension
  return relative.filename() == "Makefile" || top == "scripts" || top == ".ci";
}

std::vector<SourceText> read_tree(const fs::path& root) {
  std::vector<SourceText> sources;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::end(it); ++it) {
    fs::path relative = it->path().lexically_relative(root);
    if (it->is_directory()) {
      if (kSkippedFolders.contains(relative.filename().string()) ||
          kSkippedPaths.contains(relative.generic_string())) {
        it.disable_recursion_pending();
      }
      continue;
    }
    if (!it->is_regular_file() || !is_read(relative)) continue;
    std::ifstream file(it->path(), std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    sources.emplace_back(relative.generic_string(), text);
  }
  std::sort(sources.begin(), sources.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return sources;
}

TEST(Tree, KeepsItsRules) {
  std::vector<SourceText> sources = read_tree(BERTH_SOURCE_ROOT);
  ASSERT_GT(sources.size(), 20U) << "nothing to read in " << BERTH_SOURCE_ROOT;
  std::string report;
  std::size_t count = 0;
  const auto note = [&](const Violations& violations) {
    for (const Violation& violation : violations) report += violation.to_string() + "\n";
    count += violations.size();
  };
  for (const SourceText& source : sources) note(all_rules(source));
  note(same_names(sources));
  EXPECT_EQ(count, 0U) << report;
}

}  // namespace
}  // namespace berth::tidy
