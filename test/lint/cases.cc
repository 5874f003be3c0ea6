#include "lint/cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "kinds/schema/manifest_check.h"

namespace berth::lint_test {

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> files_in(const fs::path& folder, std::string_view ending) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ending) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// "### bad a.yaml", its text, "### good a.yaml", its text.
lint::File part_of(const std::string& text, const std::string& mark) {
  const std::size_t at = text.find("### " + mark + " ");
  if (at == std::string::npos) return {};
  const std::size_t line = text.find('\n', at);
  const std::size_t next = text.find("\n### ", line);
  const std::size_t name = at + 5 + mark.size();
  const std::size_t end = next == std::string::npos ? text.size() : next + 1;
  return {text.substr(name, line - name), text.substr(line + 1, end - line - 1)};
}

std::vector<Case> read_cases() {
  std::vector<Case> out;
  for (const fs::path& path : files_in(BERTH_SOURCE_ROOT "/test/lint/rules", ".txt")) {
    const std::string text = read_text(path.string());
    Case one;
    one.file = path.filename().string();
    one.rule = path.stem().string();
    if (one.rule.size() > 2 && one.rule[one.rule.size() - 2] == '-') {
      one.rule.resize(one.rule.size() - 2);
    }
    one.bad = part_of(text, "bad");
    one.good = part_of(text, "good");
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = read_cases();
  return all;
}

const lint::Schemas& schemas() {
  static const std::unique_ptr<sim::ManifestCheck> check = [] {
    std::string crds;
    for (const fs::path& path : files_in(BERTH_SOURCE_ROOT "/deploy/crds", ".yaml")) {
      crds += "---\n" + read_text(path.string()) + "\n";
    }
    auto made = sim::ManifestCheck::make(crds);
    EXPECT_TRUE(made.ok()) << made.error().to_string();
    return std::move(*made);
  }();
  return *check;
}

std::size_t count_rule(const lint::Report& report, std::string_view rule) {
  return static_cast<std::size_t>(
      std::count_if(report.findings.begin(), report.findings.end(),
                    [&](const lint::Finding& finding) { return finding.rule == rule; }));
}

std::string words_of(const std::vector<lint::Finding>& findings) {
  std::string out;
  for (const lint::Finding& one : findings) {
    out += one.file + ":" + std::to_string(one.line) + ": " + one.what + " [" + one.rule + "]\n";
  }
  return out;
}

}  // namespace berth::lint_test
