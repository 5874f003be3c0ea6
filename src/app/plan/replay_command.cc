#include "app/plan/replay_command.h"

#include <fmt/format.h>

#include <fstream>
#include <istream>
#include <ostream>

#include "control/decision_line.h"
#include "control/replay.h"
#include "text/escape.h"

namespace berth::app {

namespace {

constexpr std::size_t kLongestLine = 64 << 20;

enum class Read { kLine, kEnd, kCut, kTooLong };

// A line without its newline. What stands after the last newline is a line that was not finished.
Read read_line(std::istream& in, std::string& out) {
  out.clear();
  while (true) {
    const int c = in.get();
    if (c == std::char_traits<char>::eof()) return out.empty() ? Read::kEnd : Read::kCut;
    if (c == '\n') return Read::kLine;
    if (out.size() >= kLongestLine) return Read::kTooLong;
    out.push_back(static_cast<char>(c));
  }
}

int damaged(Terminal& terminal, const std::string& file, const std::string& what) {
  terminal.err << "berth replay: " << text::terminal_safe(file) << ": " << text::terminal_safe(what)
               << '\n';
  return 2;
}

void show_difference(std::ostream& out, const control::ReplayDifference& d) {
  if (d.what == "objects") {
    out << fmt::format("cycle {}: the objects have the digest {} now, the log says {}\n", d.cycle,
                       d.found, text::terminal_safe(d.logged));
    return;
  }
  out << fmt::format("cycle {}: the decision over {} has the digest {} now, the log says {}\n",
                     d.cycle, d.what, d.found, text::terminal_safe(d.logged));
  out << text::terminal_safe(control::decision_line({.cycle = d.cycle}, d.decision)) << '\n';
}

}  // namespace

int replay_command(const ReplayArguments& arguments, Terminal& terminal) {
  std::ifstream in(arguments.file, std::ios::binary);
  if (!in) return damaged(terminal, arguments.file, "cannot be opened");
  control::Replay replay;
  std::string line;
  bool cut = false;
  while (true) {
    const Read read = read_line(in, line);
    if (read == Read::kTooLong) {
      return damaged(
          terminal, arguments.file,
          fmt::format("line {} is longer than {} bytes", replay.lines() + 1, kLongestLine));
    }
    cut = read == Read::kCut;
    if (read != Read::kLine) break;
    auto answer = replay.line(line);
    if (!answer.ok()) return damaged(terminal, arguments.file, answer.error().to_string());
    if (*answer) {
      show_difference(terminal.out, **answer);
      return 1;
    }
    if (!arguments.at.empty() && replay.id() == arguments.at) {
      terminal.out << text::terminal_safe(replay.written()) << '\n';
      return 0;
    }
  }
  if (in.bad()) return damaged(terminal, arguments.file, "cannot be read");
  if (replay.lines() == 0) return damaged(terminal, arguments.file, "it is empty");
  if (!arguments.at.empty()) {
    terminal.err << "berth replay: no decision of the log has the id "
                 << text::terminal_safe(arguments.at) << '\n';
    return 1;
  }
  if (cut) terminal.err << "berth replay: the last line is cut off; it is not looked at\n";
  terminal.out << fmt::format("{} decisions in {} cycles came out the same\n", replay.decisions(),
                              replay.cycles());
  return 0;
}

}  // namespace berth::app
