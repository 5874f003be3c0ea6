#include "app/plan/plan_command.h"

#include <charconv>
#include <istream>
#include <optional>
#include <ostream>

#include "app/busy.h"
#include "app/input.h"
#include "app/plan/plan_explain.h"
#include "app/plan/plan_json.h"
#include "app/plan/plan_table.h"
#include "app/shell_word.h"
#include "text/escape.h"
#include "text/quantity.h"
#include "text/rfc3339.h"

namespace berth::app {

namespace {

struct Settings {
  InputOptions input;
  PlanOptions plan;
};

// Checks what CLI11 does not: each error names the option and what it takes.
Result<Settings> settings_of(const PlanArguments& args, const Terminal& terminal) {
  Settings settings;
  settings.input.paths = args.paths;
  if (args.output != "table" && args.output != "json" && args.output != "yaml" &&
      args.output != "csv") {
    return invalid("--output: found \"" + text::terminal_safe(args.output) +
                   "\", want table, json, yaml or csv");
  }
  if (args.explain && args.explain->empty()) {
    return invalid("--explain: found \"\", want the name of a workload, as in the table");
  }
  if (args.explain && args.output != "table") {
    return invalid("--explain prints text; leave -o away, or --explain: -o " + args.output +
                   " has the certificate of every workload that waits");
  }
  BERTH_TRY(settings.plan.flags, policy_flags(args.policy));
  settings.plan.quota_only = args.quota_only;
  if (args.cycles != "until-stable") {
    int cycles = 0;
    const char* end = args.cycles.data() + args.cycles.size();
    const auto [stop, code] = std::from_chars(args.cycles.data(), end, cycles);
    if (code != std::errc() || stop != end || cycles < 1 || cycles > kMaxCycles) {
      return invalid("--cycles: found \"" + text::terminal_safe(args.cycles) +
                     "\", want until-stable or a number 1..1000");
    }
    settings.plan.cycles = cycles;
  }
  const Result<text::Quantity> size = text::parse_quantity(args.max_input);
  if (!size.ok() || size->value() < 1 || size->value() > static_cast<std::int64_t>(kMostMaxInput)) {
    return invalid("--max-input: found \"" + text::terminal_safe(args.max_input) +
                   "\", want a size such as 512Mi, less than 4Gi");
  }
  settings.input.max_bytes = static_cast<std::uint64_t>(size->value());
  settings.plan.now_ns = terminal.wall.now_ns();
  if (!args.now.empty()) {
    Result<std::int64_t> now = text::parse_rfc3339(args.now);
    if (!now.ok()) return invalid("--now: " + now.error().to_string());
    settings.plan.now_ns = *now;
  }
  return settings;
}

std::string command_line(const PlanArguments& args) {
  std::string out = "berth plan";
  for (const std::string& path : args.paths) out += " -f " + shell_word(path);
  if (args.cycles != PlanArguments{}.cycles) out += " --cycles " + shell_word(args.cycles);
  for (const std::string& word : args.policy.words()) out += ' ' + shell_word(word);
  if (args.quota_only) out += " --quota-only";
  if (args.max_input != PlanArguments{}.max_input) {
    out += " --max-input " + shell_word(args.max_input);
  }
  if (!args.now.empty()) out += " --now " + shell_word(args.now);
  return out;
}

void print_troubles(const PlanResult& plan, std::ostream& err) {
  constexpr std::size_t kMost = 20;
  for (std::size_t i = 0; i < plan.invalid.size() && i < kMost; ++i) {
    err << "berth: " << text::terminal_safe(note_line(plan.invalid[i])) << '\n';
  }
  if (plan.invalid.size() > kMost) {
    err << "berth: +" << plan.invalid.size() - kMost << " more\n";
  }
  err << "berth: nothing was planned: half of a cluster would give a wrong plan\n";
}

}  // namespace

int plan_command(const PlanArguments& args, Terminal& terminal) {
  const Result<Settings> settings = settings_of(args, terminal);
  if (!settings.ok()) {
    terminal.err << "berth: " << settings.error().to_string() << '\n';
    return kExitUsage;
  }
  Progress progress(terminal.err_is_terminal ? &terminal.err : nullptr, terminal.monotonic);
  Input input = read_input(settings->input, terminal.in, progress);
  const bool readable = input.unreadable.empty();
  progress.finish();
  std::optional<Busy> busy(std::in_place, "planning", terminal);
  const std::int64_t before_ns = terminal.monotonic.ticks_ns();
  const PlanResult plan = readable ? make_plan(input.inputs, settings->plan)
                                   : unreadable_plan(std::move(input.unreadable));
  const std::int64_t took_ns = terminal.monotonic.ticks_ns() - before_ns;
  if (!readable || !args.explain) busy.reset();
  if (!readable) print_troubles(plan, terminal.err);
  if (readable && args.explain) {
    const Result<std::string> text =
        explain_in_plan(plan, input.inputs, settings->plan, *args.explain,
                        command_line(args) + " --explain " + shell_word(*args.explain));
    busy.reset();
    if (!text.ok()) {
      terminal.err << "berth: --explain: " << text::terminal_safe(text.error().to_string())
                   << "; the names are in the table: run without --explain\n";
      return kExitUsage;
    }
    terminal.out << *text;
    return exit_code(plan);
  }
  if (args.output == "json") {
    terminal.out << plan_json(plan);
  } else if (args.output == "yaml") {
    terminal.out << plan_yaml(plan);
  } else if (args.output == "csv") {
    terminal.out << csv_text(plan_sheet(plan));
  } else {
    TableOptions options;
    options.command = command_line(args);
    if (terminal.out_is_terminal) options.decision_ns = took_ns;
    terminal.out << plan_table(plan, options);
  }
  return exit_code(plan);
}

}  // namespace berth::app
