#include "case_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace berth::why_corpus {

namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> split(const std::string& text, const std::string& mark) {
  std::vector<std::string> out;
  std::size_t at = 0;
  for (std::size_t end = 0; (end = text.find(mark, at)) != std::string::npos;
       at = end + mark.size()) {
    out.push_back(text.substr(at, end - at));
  }
  out.push_back(text.substr(at));
  return out;
}

Status read_subject(const std::string& text, Case& out) {
  const std::size_t blank = text.find(' ');
  const std::size_t slash = text.find('/');
  if (blank == std::string::npos || slash == std::string::npos || slash < blank) {
    return invalid("subject: found \"" + text + "\", want KIND NS/NAME");
  }
  out.kind = text.substr(0, blank);
  out.ns = text.substr(blank + 1, slash - blank - 1);
  out.subject = text.substr(slash + 1);
  return {};
}

Status read_line(const std::string& key, const std::string& text, std::string& base, Case& out) {
  if (key == "subject") return read_subject(text, out);
  if (key == "base") {
    base = text;
  } else if (key == "verdict") {
    out.verdicts = split(text, " or ");
  } else if (key == "reason") {
    out.reasons = split(text, " or ");
  } else if (key == "stage") {
    out.stages = split(text, " or ");
  } else if (key == "also") {
    out.also = split(text, ", ");
  } else if (key == "maybe") {
    out.maybe = split(text, ", ");
  } else if (key == "not") {
    out.not_named = split(text, ", ");
  } else if (key == "health") {
    out.health = split(text, ", ");
  } else if (key == "says") {
    out.says.push_back(text);
  } else if (key == "fix") {
    out.fix = text;
  } else if (key == "nofix") {
    out.no_fix = text;
  } else if (key == "start") {
    out.start = text;
  } else if (key == "now") {
    out.now = text;
  } else if (key == "server") {
    out.server = text == "yes";
  } else if (key.starts_with("cure ")) {
    out.cures.emplace_back(key.substr(5), text);
  } else {
    return invalid("found \"" + key + "\" in the header");
  }
  return {};
}

// The comment at the top: a title, an empty line, then keys.
Status read_header(const std::string& bytes, std::string& base, Case& out) {
  std::istringstream lines(bytes);
  bool titled = false;
  for (std::string line; std::getline(lines, line) && line.starts_with('#');) {
    if (!titled) {
      titled = line == "#";
      continue;
    }
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) return invalid("found \"" + line + "\", want KEY: TEXT");
    BERTH_CHECK(read_line(line.substr(2, colon - 2), line.substr(colon + 2), base, out));
  }
  if (out.subject.empty()) return invalid("no subject");
  if (out.verdicts.empty()) return invalid("no verdict");
  if (!out.fine() && (out.reasons.empty() || out.stages.empty() || out.cures.empty())) {
    return invalid("reason, stage and cure are needed");
  }
  return {};
}

}  // namespace

bool contains(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::vector<std::string> Case::causes() const {
  std::vector<std::string> out;
  for (const auto& [reason, line] : cures) {
    if (!contains(out, reason)) out.push_back(reason);
  }
  return out;
}

Result<Case> read_case(const std::string& folder, const std::string& name) {
  Case out;
  out.name = name;
  const std::string bytes = read_file(fs::path(folder) / (name + ".yaml"));
  std::string base;
  BERTH_CHECK(read_header(bytes, base, out));
  if (!base.empty()) {
    const std::string below = read_file(fs::path(folder) / "base" / (base + ".yaml"));
    if (below.empty()) return invalid("no base " + base);
    BERTH_CHECK(out.objects.add_yaml(below));
  }
  BERTH_CHECK(out.objects.add_yaml(bytes));
  return out;
}

std::vector<std::string> case_names(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const fs::path relative = entry.path().lexically_relative(folder);
    if (relative.extension() != ".yaml" || relative.parent_path() == "base") continue;
    out.push_back((relative.parent_path() / relative.stem()).generic_string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::pair<std::string, std::string>> known_failures(const std::string& folder) {
  std::vector<std::pair<std::string, std::string>> out;
  std::istringstream lines(read_file(fs::path(folder) / "known.txt"));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t blank = line.find(' ');
    out.emplace_back(line.substr(0, blank),
                     blank == std::string::npos ? "" : line.substr(blank + 1));
  }
  return out;
}

Result<Objects> cured(const Case& one, const std::vector<std::string>& reasons) {
  Objects out = one.objects;
  for (const auto& [reason, line] : one.cures) {
    if (!contains(reasons, reason)) continue;
    const Status done = apply_cure(line, out);
    if (!done.ok()) return invalid("cure " + reason + ": " + done.error().to_string());
  }
  return out;
}

}  // namespace berth::why_corpus
