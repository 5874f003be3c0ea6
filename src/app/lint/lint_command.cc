#include "app/lint/lint_command.h"

#include <algorithm>
#include <filesystem>
#include <istream>
#include <iterator>
#include <optional>
#include <ostream>
#include <set>

#include "app/busy.h"
#include "app/cluster/user_crds.h"
#include "app/files.h"
#include "app/input.h"
#include "app/lint/line_diff.h"
#include "app/views/sheet.h"
#include "kinds/schema/manifest_check.h"
#include "people/lint/lint.h"
#include "people/view/wrap.h"
#include "text/escape.h"
#include "text/json_writer.h"
#include "text/quantity.h"

namespace berth::app {

namespace {

namespace fs = std::filesystem;

constexpr int kExitFindings = 1;
constexpr int kExitUnreadable = 20;
constexpr int kDeepestFolder = 64;
constexpr const char* kStandardInput = "(standard input)";

bool is_lintable(const fs::path& path) {
  const std::string ending = path.extension().string();
  return ending == ".yaml" || ending == ".yml" || ending == ".json" || ending == ".sh" ||
         ending == ".bash" || ending == ".promql" || ending == ".py";
}

// Reads what the command line names, within a bound on all of it.
class LintInput {
 public:
  LintInput(std::uint64_t max_bytes, Terminal& terminal)
      : left_(max_bytes), limit_(max_bytes), terminal_(terminal) {}

  void add(const std::string& path) {
    if (path == "-") return add_standard_input();
    std::error_code code;
    if (!fs::exists(path, code)) return fail(path, "no such file or folder");
    if (!fs::is_directory(path, code)) return add_file(path);
    const std::size_t before = files_.size() + unreadable_.size();
    walk(path, 0);
    if (files_.size() + unreadable_.size() == before) {
      fail(path, "the folder holds no file that lint reads");
    }
  }

  std::vector<lint::File> files_;
  std::vector<lint::Unreadable> unreadable_;

 private:
  void fail(const std::string& path, std::string message) {
    unreadable_.push_back({path, 0, 0, std::move(message)});
  }

  void add_standard_input() {
    std::string bytes;
    char buffer[64 * 1024];
    while (terminal_.in.read(buffer, sizeof buffer) || terminal_.in.gcount() > 0) {
      bytes.append(buffer, static_cast<std::size_t>(terminal_.in.gcount()));
      if (bytes.size() > left_) return too_much(kStandardInput);
    }
    keep(kStandardInput, std::move(bytes));
  }

  void add_file(const std::string& path) {
    std::error_code code;
    const fs::path real = fs::canonical(path, code);
    if (!code && !seen_.insert(real.string()).second) return;
    if (files_.size() >= kMaxInputFiles) return fail(path, "more than 100000 files, the limit");
    auto bytes = read_file(path, static_cast<std::size_t>(left_));
    if (!bytes.ok()) {
      if (bytes.error().code() == Code::kExhausted) return too_much(path);
      return fail(path, bytes.error().message());
    }
    keep(path, std::move(*bytes));
  }

  void keep(std::string name, std::string bytes) {
    if (bytes.find('\0') != std::string::npos) {
      return fail(name, "not a text file: it holds a zero byte");
    }
    left_ -= std::min<std::uint64_t>(left_, bytes.size());
    files_.push_back({std::move(name), std::move(bytes)});
  }

  void too_much(const std::string& path) {
    fail(path, "the input is larger than " + std::to_string(limit_) +
                   " bytes, which is the limit; --max-input raises it");
  }

  void walk(const fs::path& folder, int depth) {
    std::error_code code;
    const fs::path real = fs::canonical(folder, code);
    if (code || !folders_.insert(real.string()).second) return;
    if (depth > kDeepestFolder) return fail(folder.string(), "folders nest deeper than 64 levels");
    std::vector<fs::path> entries;
    for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
      if (it->path().filename().string().front() != '.') entries.push_back(it->path());
    }
    if (code) return fail(folder.string(), "cannot be listed: " + code.message());
    std::sort(entries.begin(), entries.end());
    for (const fs::path& entry : entries) {
      std::error_code ignored;
      if (fs::is_directory(entry, ignored)) {
        walk(entry, depth + 1);
      } else if (is_lintable(entry)) {
        add_file(entry.string());
      }
    }
  }

  std::uint64_t left_, limit_;
  Terminal& terminal_;
  std::set<std::string> seen_, folders_;
};

std::string lint_safe(std::string_view text) { return text::terminal_safe(text); }

// "file:7: ", as editors and people read it.
std::string place_text(const std::string& file, int line) {
  return lint_safe(file) + (line > 0 ? ':' + std::to_string(line) : "") + ": ";
}

void print_lines(std::ostream& out, const std::string& text, std::string head = {}) {
  std::string lines;
  people::wrap(std::move(head), 4, text, lines);
  out << lines;
}

void print_finding(std::ostream& out, const lint::Finding& finding, std::string_view said = {}) {
  print_lines(out, place_text(finding.file, finding.line) +
                       (said.empty() ? lint::name(finding.severity) : std::string(said)) + ": " +
                       lint_safe(finding.what) + " [" + std::string(finding.rule) + ']');
  if (finding.object.empty()) return;
  print_lines(out,
              "in " + lint_safe(finding.object) +
                  (finding.field.empty() ? "" : ", " + lint_safe(finding.field)),
              "    ");
}

std::size_t count_of(const std::vector<lint::Finding>& findings, lint::Severity severity) {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [severity](const lint::Finding& f) { return f.severity == severity; }));
}

std::size_t errors_in(const std::vector<lint::Finding>& findings) {
  return count_of(findings, lint::Severity::kError);
}

std::string counted(std::size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

void print_text(const lint::Report& report, std::ostream& out) {
  for (const lint::Unreadable& one : report.unreadable) {
    print_lines(out, place_text(one.file, one.line) + "unreadable: " + lint_safe(one.message));
  }
  for (const lint::Finding& finding : report.findings) {
    print_finding(out, finding);
    print_lines(out, "why: " + lint_safe(finding.why), "    ");
    print_lines(out, "fix: " + lint_safe(finding.fix), "    ");
  }
  const std::size_t notes = count_of(report.findings, lint::Severity::kNote);
  out << counted(report.files, "file") << ": " << counted(errors_in(report.findings), "error")
      << ", " << counted(count_of(report.findings, lint::Severity::kWarning), "warning");
  if (notes > 0) out << ", " << counted(notes, "note");
  if (!report.unreadable.empty()) out << ", " << report.unreadable.size() << " unreadable";
  if (report.cut) out << "; more findings than are shown";
  out << '\n';
}

Sheet findings_sheet(const lint::Report& report) {
  Sheet sheet{{{"FILE"},
               {"LINE"},
               {"SEVERITY"},
               {"RULE"},
               {"OBJECT"},
               {"FIELD"},
               {"WHAT"},
               {"WHY"},
               {"FIX"}},
              {}};
  for (const lint::Unreadable& one : report.unreadable) {
    sheet.rows.push_back(
        {one.file, std::to_string(one.line), "unreadable", "", "", "", one.message, "", ""});
  }
  for (const lint::Finding& f : report.findings) {
    sheet.rows.push_back({f.file, std::to_string(f.line), std::string(lint::name(f.severity)),
                          std::string(f.rule), f.object, f.field, f.what, f.why, f.fix});
  }
  return sheet;
}

void write_finding(text::JsonWriter& json, const lint::Finding& finding) {
  json.object([&] {
    json.field("file", finding.file);
    if (finding.document > 0) json.field("document", finding.document);
    json.field("line", finding.line);
    if (finding.column > 0) json.field("column", finding.column);
    json.field("severity", lint::name(finding.severity));
    json.field("rule", finding.rule);
    if (!finding.object.empty()) json.field("object", finding.object);
    if (!finding.field.empty()) json.field("field", finding.field);
    json.field("message", finding.what);
    json.field("why", finding.why);
    json.field("fix", finding.fix);
    json.field("convertible", finding.edit.has_value());
  });
}

std::string report_json(const lint::Report& report) {
  text::JsonWriter json({.indent = 2});
  json.object([&] {
    json.field("files", report.files);
    json.field("documents", report.documents);
    json.field("errors", errors_in(report.findings));
    json.field("warnings", count_of(report.findings, lint::Severity::kWarning));
    json.field("notes", count_of(report.findings, lint::Severity::kNote));
    json.field("complete", !report.cut);
    json.array("findings", [&] {
      for (const lint::Finding& finding : report.findings) write_finding(json, finding);
    });
    json.array("unreadable", [&] {
      for (const lint::Unreadable& one : report.unreadable) {
        json.object([&] {
          json.field("file", one.file);
          if (one.document > 0) json.field("document", one.document);
          if (one.line > 0) json.field("line", one.line);
          json.field("message", one.message);
        });
      }
    });
  });
  return std::move(json).take() + "\n";
}

void print_rules(const std::string& output, std::ostream& out) {
  if (output == "text") {
    for (const lint::Rule& rule : lint::rules()) {
      out << rule.id << " (" << lint::name(rule.severity) << ")\n";
      print_lines(out, std::string(rule.what) + '.', "    ");
      print_lines(out, "why: " + std::string(rule.why), "    ");
    }
    return;
  }
  if (output == "csv") {
    Sheet sheet{{{"ID"}, {"SEVERITY"}, {"WHAT"}, {"WHY"}}, {}};
    for (const lint::Rule& rule : lint::rules()) {
      sheet.rows.push_back({std::string(rule.id), std::string(lint::name(rule.severity)),
                            std::string(rule.what), std::string(rule.why)});
    }
    out << csv_text(sheet);
    return;
  }
  text::JsonWriter json({.indent = 2});
  json.object([&] {
    json.array("rules", [&] {
      for (const lint::Rule& rule : lint::rules()) {
        json.object([&] {
          json.field("id", rule.id);
          json.field("severity", lint::name(rule.severity));
          json.field("what", rule.what);
          json.field("why", rule.why);
        });
      }
    });
  });
  const std::string text = std::move(json).take() + "\n";
  out << (output == "json" ? text : yaml_of(text));
}

int usage(Terminal& terminal, const std::string& message, const char* command) {
  terminal.err << "berth: " << lint_safe(message) << "\nberth: see berth " << command
               << " --help\n";
  return kExitUsage;
}

}  // namespace

int lint_command(const LintArguments& args, Terminal& terminal) {
  constexpr std::string_view kOutputs[] = {"text", "json", "yaml", "csv"};
  if (std::find(std::begin(kOutputs), std::end(kOutputs), args.output) == std::end(kOutputs)) {
    return usage(terminal, "found --output " + args.output + ", want text, json, yaml or csv",
                 "lint");
  }
  if (args.rules) {
    print_rules(args.output, terminal.out);
    return 0;
  }
  if (args.paths.empty()) return usage(terminal, "found no file, want at least one", "lint");
  const auto limit = text::parse_quantity(args.max_input);
  if (!limit.ok() || limit->value() <= 0) {
    return usage(terminal, "found --max-input " + args.max_input + ", want a size like 256Mi",
                 "lint");
  }
  const auto schemas = sim::ManifestCheck::make(user_crds());
  if (!schemas.ok()) {
    terminal.err << "berth: " << lint_safe(schemas.error().to_string()) << '\n';
    return kExitUnreadable;
  }
  LintInput input(static_cast<std::uint64_t>(limit->value()), terminal);
  for (const std::string& path : args.paths) input.add(path);
  std::optional<Busy> busy(std::in_place, "checking", terminal);
  lint::Report report = lint::lint(input.files_, schemas->get());
  busy.reset();
  report.unreadable.insert(report.unreadable.begin(), input.unreadable_.begin(),
                           input.unreadable_.end());
  if (args.output == "text") {
    print_text(report, terminal.out);
  } else if (args.output == "csv") {
    terminal.out << csv_text(findings_sheet(report));
  } else {
    const std::string json = report_json(report);
    terminal.out << (args.output == "json" ? json : yaml_of(json));
  }
  if (!report.unreadable.empty()) return kExitUnreadable;
  const std::size_t warnings =
      args.strict ? count_of(report.findings, lint::Severity::kWarning) : 0;
  return errors_in(report.findings) + warnings > 0 ? kExitFindings : 0;
}

int convert_command(const ConvertArguments& args, Terminal& terminal) {
  if (args.in_place && args.path == "-") {
    return usage(terminal, "found --in-place and -, want a file", "convert");
  }
  const auto schemas = sim::ManifestCheck::make(user_crds());
  if (!schemas.ok()) {
    terminal.err << "berth: " << lint_safe(schemas.error().to_string()) << '\n';
    return kExitUnreadable;
  }
  LintInput input(kDefaultMaxInput, terminal);
  std::error_code code;
  if (args.path != "-" && fs::is_directory(args.path, code)) {
    return usage(terminal, "found the folder " + args.path + ", want a file", "convert");
  }
  input.add(args.path);
  if (!input.unreadable_.empty() || input.files_.empty()) {
    const std::string message =
        input.unreadable_.empty() ? "cannot be read" : input.unreadable_.front().message;
    terminal.err << "berth: " << lint_safe(args.path) << ": " << lint_safe(message) << '\n';
    return kExitUnreadable;
  }
  const lint::File& file = input.files_.front();
  const auto made = lint::convert(file, schemas->get());
  if (!made.ok()) {
    terminal.err << "berth: " << lint_safe(file.name) << ": " << lint_safe(made.error().to_string())
                 << "; nothing was written\n";
    return kExitUnreadable;
  }
  const bool changed = made->bytes != file.bytes;
  if (args.diff) {
    terminal.out << line_diff(file.bytes, made->bytes, file.name);
  } else if (args.in_place || !args.out.empty()) {
    const std::string& target = args.in_place ? args.path : args.out;
    if (changed || !args.in_place) {
      const Status wrote = write_output(target, made->bytes);
      if (!wrote.ok()) {
        terminal.err << "berth: " << lint_safe(wrote.error().to_string()) << '\n';
        return kExitUnreadable;
      }
    }
  } else {
    terminal.out << made->bytes;
  }
  for (const lint::Finding& finding : made->done) {
    print_finding(terminal.err, finding, "corrected");
    if (!finding.edit->assumes.empty()) {
      terminal.err << "    assumed: " << lint_safe(finding.edit->assumes) << '\n';
    }
  }
  // Where it stands in what was written.
  const std::string written = args.in_place || args.diff ? file.name
                              : args.out.empty()         ? "standard output"
                                                         : args.out;
  for (lint::Finding finding : made->left) {
    finding.file = written;
    print_finding(terminal.err, finding, std::string("left, ") + lint::name(finding.severity));
    print_lines(terminal.err, "fix: " + lint_safe(finding.fix), "    ");
  }
  return errors_in(made->left) > 0 ? kExitFindings : 0;
}

}  // namespace berth::app
