#include "app/views/snapshot_command.h"

#include <ostream>

#include "app/files.h"
#include "app/progress.h"
#include "text/escape.h"

namespace berth::app {

int snapshot_command(const SnapshotArguments& arguments, Terminal& terminal) {
  const Result<std::string> text = snapshot_of(arguments.view, arguments.arguments, terminal);
  if (!text.ok()) {
    terminal.err << "berth: " << text::terminal_safe(text.error().to_string()) << '\n';
    return 1;
  }
  if (arguments.file.empty() || arguments.file == "-") {
    terminal.out << *text;
    return 0;
  }
  // Only for the owner: it tells what runs in the cluster, and how.
  if (const Status written = write_output(arguments.file, *text, 0600); !written.ok()) {
    terminal.err << "berth: " << text::terminal_safe(written.error().to_string()) << '\n';
    return 1;
  }
  terminal.err << "berth: wrote " << text::terminal_safe(arguments.file) << ", "
               << show_bytes(text->size()) << '\n';
  return 0;
}

}  // namespace berth::app
