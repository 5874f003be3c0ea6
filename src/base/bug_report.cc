#include "base/bug_report.h"

#include <fmt/format.h>

namespace berth {
namespace {

// The path below src/, so that the label does not depend on where the program was built.
std::string_view path_in_tree(std::string_view file) {
  std::size_t at = file.rfind("src/");
  return at == std::string_view::npos ? file : file.substr(at + 4);
}

}  // namespace

BugReporter::BugReporter(const Logger& log, MetricsRegistry& metrics)
    : log_(log),
      bugs_(metrics.counter({.name = "berth_bug_total",
                             .help = "Mistakes of the program that it survived, by place.",
                             .labels = {"site"}})),
      before_(set_bug_sink(this)) {}

BugReporter::~BugReporter() { set_bug_sink(before_); }

void BugReporter::bug(const BugSite& site) noexcept {
  std::string place = fmt::format("{}:{}", path_in_tree(site.file), site.line);
  bugs_.with({place}).add();
  log_.error("bug survived", {{"site", place}, {"why", site.why}});
}

}  // namespace berth
