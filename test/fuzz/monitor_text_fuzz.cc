// What the health and metrics of a node read: kernel log lines, the saved verdicts, the counters
// file.
#include <string>

#include "base/utf8.h"
#include "fuzz.h"
#include "node/monitor/exporter.h"
#include "node/monitor/health.h"
#include "node/monitor/xid.h"

BERTH_FUZZ_TARGET(monitor_text) {
  using namespace berth;
  const std::string_view input = fuzz::text_of(data, size);
  if (const auto line = monitor::parse_xid_line(input)) {
    fuzz::check(line->code > 0 && line->pid >= 0, "a code and perhaps a process");
    fuzz::check(is_utf8(line->detail) && is_utf8(line->process), "safe to show");
    const auto again = monitor::parse_xid_line("NVRM: Xid (PCI:" + line->pci_bus_id +
                                               "): " + std::to_string(line->code));
    fuzz::check(again && again->pci_bus_id == line->pci_bus_id && again->code == line->code,
                "the plain form reads back");
    monitor::decode_link_fault(line->code, line->detail);
    monitor::decode_recovery(line->detail);
  }
  monitor::HealthBook book{monitor::HealthOptions()};
  const std::string before = book.save();
  if (book.restore(input).ok()) {
    monitor::HealthBook twin{monitor::HealthOptions()};
    fuzz::check(twin.restore(book.save()).ok() && twin.save() == book.save(), "reads back");
  } else {
    fuzz::check(book.save() == before, "a damaged text changes nothing");
  }
  if (const auto rows = monitor::parse_counters_csv(input); rows.ok()) {
    std::string text;
    for (const auto& row : *rows) text += row.field + "," + row.type + ",\"" + row.help + "\"\n";
    const auto again = monitor::parse_counters_csv(text);
    fuzz::check(again.ok() && *again == *rows, "rows read back");
  }
  return 0;
}
