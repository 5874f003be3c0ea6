#include "app/views/view_screen.h"

#include <optional>
#include <ostream>

#include "app/busy.h"
#include "app/views/watch.h"
#include "text/escape.h"

namespace berth::app {

namespace {

Result<ViewFormat> format_of(const std::string& output) {
  if (output == "table") return ViewFormat::kTable;
  if (output == "json") return ViewFormat::kJson;
  if (output == "yaml") return ViewFormat::kYaml;
  if (output == "csv") return ViewFormat::kCsv;
  return invalid("--output: found \"" + text::terminal_safe(output) +
                 "\", want table, json, yaml or csv");
}

ViewStyle style_of(const Terminal& terminal, ViewFormat format) {
  const auto no_color = terminal.environment.find("NO_COLOR");
  const bool plain = no_color != terminal.environment.end() && !no_color->second.empty();
  ViewStyle style;
  style.format = format;
  style.paint = Paint(terminal.out_is_terminal && !plain && format == ViewFormat::kTable);
  style.program = terminal.program;
  return style;
}

std::string listed_names(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 4;
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < kMost; ++i) out += (i > 0 ? ", " : "") + names[i];
  if (names.size() > kMost) out += ", +" + std::to_string(names.size() - kMost) + " more";
  return out;
}

void print_view_notes(const ClusterView& view, Terminal& terminal) {
  if (!view.unseen.empty()) {
    terminal.err << "berth: partial view, not seen: "
                 << text::terminal_safe(listed_names(view.unseen)) << '\n';
  }
  if (view.inputs.counts.invalid_objects > 0) {
    const auto& notes = view.inputs.invalid;
    terminal.err << "berth: left out as invalid: " << view.inputs.counts.invalid_objects
                 << " objects"
                 << (notes.empty()
                         ? std::string()
                         : ", the first is " +
                               text::terminal_safe(notes[0].object + ": " + notes[0].path + ": " +
                                                   notes[0].message))
                 << '\n';
  }
}

int view_error(const Error& error, int code, Terminal& terminal) {
  terminal.err << "berth: " << text::terminal_safe(error.to_string()) << '\n';
  return code;
}

int show_once(const ViewArguments& arguments, const ViewStyle& style, const MakeScreen& make,
              Terminal& terminal) {
  const Result<ClusterView> view = look(arguments.view, terminal);
  if (!view.ok()) return view_error(view.error(), kExitNothing, terminal);
  std::optional<Busy> busy(std::in_place, "deciding", terminal);
  const Result<Screen> screen = make(*view, style);
  busy.reset();
  if (!screen.ok()) {
    const bool usage = screen.error().code() == Code::kInvalid;
    return view_error(screen.error(), usage ? kExitUsage : kExitNothing, terminal);
  }
  terminal.out << screen->text << std::flush;
  print_view_notes(*view, terminal);
  return screen->code;
}

}  // namespace

int show_view(const ViewArguments& arguments, Terminal& terminal, const MakeScreen& make) {
  const Result<ViewFormat> format = format_of(arguments.output);
  if (!format.ok()) {
    terminal.err << "berth: " << format.error().to_string() << '\n';
    return kExitUsage;
  }
  const ViewStyle style = style_of(terminal, *format);
  WatchOptions watch{.on = arguments.watch, .every_s = arguments.every_s};
  if (*format == ViewFormat::kYaml) watch.between = "---\n";
  if (*format == ViewFormat::kJson || *format == ViewFormat::kCsv) watch.between = "";
  return watched(watch, terminal,
                 [&](Terminal& inner) { return show_once(arguments, style, make, inner); });
}

Screen render(const ViewStyle& style, int code, const std::function<std::string()>& table,
              const std::function<std::string()>& json, const std::function<Sheet()>& sheet) {
  switch (style.format) {
    case ViewFormat::kTable:
      return {table(), code};
    case ViewFormat::kJson:
      return {json() + '\n', code};
    case ViewFormat::kYaml:
      return {yaml_of(json()), code};
    case ViewFormat::kCsv:
      return {csv_text(sheet()), code};
  }
  return {};
}

bool in_sight(const ViewOptions& options, const ClusterView& view, std::string_view ns) {
  return options.all_namespaces || (options.ns.empty() && view.saved) || ns == view.ns;
}

}  // namespace berth::app
