#include "app/view_screen.h"

#include <atomic>
#include <memory>
#include <ostream>

#include "app/signals.h"
#include "base/run_loop.h"
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

void print_notes(const ClusterView& view, Terminal& terminal) {
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

class ViewShow {
 public:
  ViewShow(const ViewArguments& arguments, Terminal& terminal, const MakeScreen& make,
           ViewStyle style)
      : arguments_(arguments), terminal_(terminal), make_(make), style_(std::move(style)) {}

  int once(bool clear) {
    const Result<ClusterView> view = look(arguments_.view, terminal_);
    if (!view.ok()) return fail(view.error(), kExitUnreachable);
    const Result<Screen> screen = make_(*view, style_);
    if (!screen.ok()) {
      return fail(screen.error(),
                  screen.error().code() == Code::kInvalid ? kExitUsage : kExitUnreachable);
    }
    if (clear) terminal_.out << "\x1b[H\x1b[2J";
    terminal_.out << screen->text << std::flush;
    print_notes(*view, terminal_);
    return screen->code;
  }

  // Until Ctrl-C; a cluster that cannot be reached for a while is told and asked again.
  int watch() {
    std::atomic<bool> stopped = false;
    RunLoop loop(terminal_.monotonic, terminal_.wall);
    const StopSignals signals([&] {
      stopped = true;
      loop.post([&loop] { loop.stop(); });
    });
    int code = 0;
    while (!stopped) {
      code = once(terminal_.out_is_terminal);
      if (code == kExitUsage || stopped) break;
      if (!terminal_.out_is_terminal && style_.format == ViewFormat::kTable) terminal_.out << '\n';
      loop.after(std::int64_t{arguments_.every_s} * 1'000'000'000, [&loop] { loop.stop(); });
      loop.run();
    }
    return code;
  }

 private:
  int fail(const Error& error, int code) {
    terminal_.err << "berth: " << text::terminal_safe(error.to_string()) << '\n';
    return code;
  }

  const ViewArguments& arguments_;
  Terminal& terminal_;
  const MakeScreen& make_;
  ViewStyle style_;
};

}  // namespace

int show_view(const ViewArguments& arguments, Terminal& terminal, const MakeScreen& make) {
  const Result<ViewFormat> format = format_of(arguments.output);
  if (!format.ok()) {
    terminal.err << "berth: " << format.error().to_string() << '\n';
    return kExitUsage;
  }
  ViewShow show(arguments, terminal, make, style_of(terminal, *format));
  return arguments.watch ? show.watch() : show.once(false);
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
