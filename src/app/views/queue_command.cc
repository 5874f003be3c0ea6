#include "app/views/queue_command.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/shell_word.h"
#include "model/amounts.h"
#include "people/view/queue_view.h"
#include "people/view/words.h"
#include "text/escape.h"
#include "text/rfc3339.h"

namespace berth::app {

namespace {

using people::QueueLine;
using people::QueueRow;
using people::QueueView;

std::string gpus_or_dash(const QueueRow& row, std::int64_t amount) {
  return row.has_gpus ? model::show_amount(model::kGpuResource, amount) : "-";
}

std::string bare_name(const QueueLine& line) {
  const std::size_t slash = line.owner.find('/');
  if (slash != std::string::npos) return line.owner.substr(slash + 1);
  return line.workload.substr(line.workload.find('/') + 1);
}

std::string reason_words(const QueueLine& line) {
  return line.reason == model::Reason::kNone ? "starts now" : std::string(model::name(line.reason));
}

std::string next_in_line(const QueueRow& row) {
  if (row.waiting.empty()) return row.inactive.empty() ? "" : row.inactive;
  return bare_name(row.waiting.front()) + ": " + reason_words(row.waiting.front());
}

Sheet queues_sheet(const QueueView& view) {
  Sheet sheet{{{"QUEUE", false, true, 10},
               {"COHORT", false, true, 6},
               {"QUOTA", true},
               {"USED", true},
               {"BORROWED", true},
               {"WAITING", true},
               {"OLDEST", true},
               {"NEXT IN LINE", false, false, 18, true}},
              {}};
  for (const QueueRow& row : view.queues) {
    sheet.rows.push_back(
        {row.name, row.cohort, gpus_or_dash(row, row.nominal), gpus_or_dash(row, row.used),
         gpus_or_dash(row, row.borrowed), std::to_string(row.waiting.size()),
         row.oldest_ns == 0 ? "" : show_age(view.now_ns - row.oldest_ns), next_in_line(row)});
  }
  return sheet;
}

Sheet line_sheet(const std::vector<QueueLine>& lines, std::int64_t now_ns) {
  Sheet sheet{{{"#", true},
               {"WORKLOAD", false, true, 14},
               {"PRIORITY", true},
               {"PODS", true},
               {"GPUS", true},
               {"AHEAD", true},
               {"WAITS", true},
               {"REASON", false, true, 16}},
              {}};
  for (const QueueLine& line : lines) {
    const std::string ns = line.workload.substr(0, line.workload.find('/'));
    sheet.rows.push_back(
        {line.position == 0 ? "-" : std::to_string(line.position), ns + '/' + bare_name(line),
         std::to_string(line.priority), std::to_string(line.pods),
         people::show_milli(line.gpus_milli), people::show_milli(line.ahead_milli),
         line.since_ns == 0 ? "" : show_age(now_ns - line.since_ns), reason_words(line)});
  }
  return sheet;
}

std::string cells_text(const QueueRow& row) {
  Sheet sheet{{{"FLAVOR", false, true, 10},
               {"RESOURCE", false, true, 10},
               {"NOMINAL", true},
               {"USED", true},
               {"AVAILABLE", true},
               {"AT MOST", true}},
              {}};
  for (const auto& cell : row.cells) {
    std::vector<std::string> line = {cell.flavor, cell.resource};
    for (const std::int64_t n : {cell.nominal, cell.used, cell.available, cell.potential}) {
      line.push_back(model::show_amount(cell.resource, n));
    }
    sheet.rows.push_back(std::move(line));
  }
  return table_text(sheet);
}

std::string one_text(const QueueRow& row, const QueueView& view) {
  std::string locals;
  for (const std::string& local : row.local_queues) locals += (locals.empty() ? "" : ", ") + local;
  std::string out = wrapped(fmt::format("{}, {}; {} admitted, {} waiting", row.name,
                                        row.cohort.empty() ? "on its own" : "cohort " + row.cohort,
                                        row.admitted, row.waiting.size()),
                            0) +
                    '\n';
  if (!row.inactive.empty()) out += wrapped("admits nothing: " + row.inactive, 2) + '\n';
  out += wrapped(locals.empty() ? "no LocalQueue leads to it" : "local queues " + locals, 2) + '\n';
  out += '\n' + cells_text(row);
  if (row.waiting.empty()) return out;
  out += '\n' + table_text(line_sheet(row.waiting, view.now_ns), 100);
  const QueueLine& next = row.waiting.front();
  if (next.reason != model::Reason::kNone) {
    out += '\n' + wrapped(bare_name(next) + ": " + next.message, 2) + '\n';
  }
  return out;
}

std::string all_text(const QueueView& view, const ViewStyle& style) {
  if (view.queues.empty() && view.nowhere.empty()) return "there are no queues\n";
  std::string out = table_text(queues_sheet(view));
  for (const QueueLine& line : view.nowhere) {
    out += wrapped(line.workload + " waits in no queue: " + line.message, 2) + '\n';
  }
  const auto waits = std::find_if(view.queues.begin(), view.queues.end(),
                                  [](const QueueRow& row) { return !row.waiting.empty(); });
  if (waits != view.queues.end()) {
    out += "\nWho waits:  " + style.program + " queue " +
           text::terminal_safe(shell_word(waits->name)) + '\n';
  }
  return out;
}

// ---- for programs: times as RFC 3339, ages in seconds ----

std::string csv_time(std::int64_t ns) { return ns == 0 ? "" : text::format_rfc3339(ns); }

std::string csv_seconds(std::int64_t since_ns, std::int64_t now_ns) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  return since_ns == 0 ? ""
                       : std::to_string(std::max<std::int64_t>(0, now_ns - since_ns) / kSecond);
}

Sheet queues_csv(const QueueView& view) {
  Sheet sheet{{{"QUEUE"},
               {"COHORT"},
               {"QUOTA"},
               {"USED"},
               {"BORROWED"},
               {"ADMITTED"},
               {"WAITING"},
               {"OLDEST"},
               {"OLDEST SECONDS"},
               {"NEXT"},
               {"NEXT REASON"},
               {"INACTIVE"}},
              {}};
  for (const QueueRow& row : view.queues) {
    std::vector<std::string> cells = {row.name, row.cohort};
    for (const std::int64_t amount : {row.nominal, row.used, row.borrowed}) {
      cells.push_back(row.has_gpus ? model::show_amount(model::kGpuResource, amount) : "");
    }
    cells.insert(cells.end(), {std::to_string(row.admitted), std::to_string(row.waiting.size()),
                               csv_time(row.oldest_ns), csv_seconds(row.oldest_ns, view.now_ns)});
    const QueueLine* next = row.waiting.empty() ? nullptr : &row.waiting.front();
    cells.push_back(next == nullptr ? "" : next->workload);
    cells.push_back(next == nullptr ? "" : std::string(model::name(next->reason)));
    cells.push_back(row.inactive);
    sheet.rows.push_back(std::move(cells));
  }
  return sheet;
}

Sheet lines_csv(const QueueView& view) {
  Sheet sheet{{{"QUEUE"},
               {"POSITION"},
               {"WORKLOAD"},
               {"OWNER"},
               {"PRIORITY"},
               {"PODS"},
               {"GPUS"},
               {"GPUS AHEAD"},
               {"SINCE"},
               {"WAITS SECONDS"},
               {"REASON"},
               {"MESSAGE"}},
              {}};
  for (const QueueRow& row : view.queues) {
    for (const QueueLine& line : row.waiting) {
      sheet.rows.push_back({row.name, std::to_string(line.position), line.workload, line.owner,
                            std::to_string(line.priority), std::to_string(line.pods),
                            people::show_milli(line.gpus_milli),
                            people::show_milli(line.ahead_milli), csv_time(line.since_ns),
                            csv_seconds(line.since_ns, view.now_ns),
                            std::string(model::name(line.reason)), line.message});
    }
  }
  return sheet;
}

// The queue that was asked for: a ClusterQueue, else where a LocalQueue of the namespace leads.
Result<QueueView> only(QueueView view, const std::string& name, const ClusterView& from) {
  const std::string qualified = name.find('/') == std::string::npos ? from.ns + '/' + name : name;
  for (const bool local : {false, true}) {
    for (QueueRow& row : view.queues) {
      const bool leads = std::find(row.local_queues.begin(), row.local_queues.end(), qualified) !=
                         row.local_queues.end();
      if (local ? !leads : row.name != name) continue;
      QueueView out;
      out.now_ns = view.now_ns;
      out.queues.push_back(std::move(row));
      return out;
    }
  }
  std::string known;
  for (const QueueRow& row : view.queues) known += (known.empty() ? "" : ", ") + row.name;
  return Error(Code::kNotFound, "no queue " + name + "; there are: " +
                                    (known.empty() ? std::string("none") : known));
}

}  // namespace

int queue_command(const QueueArguments& arguments, Terminal& terminal) {
  return show_view(
      arguments.show, terminal,
      [&](const ClusterView& view, const ViewStyle& style) -> Result<Screen> {
        BERTH_CHECK(view.sees("clusterqueues.kueue.x-k8s.io"));
        people::PlanOptions options;
        options.now_ns = view.now_ns;
        options.quota_only = view.hides("nodes");  // not: there are none
        const people::PlanResult plan = people::make_plan(view.inputs, options);
        QueueView queues = people::make_queue_view(view.inputs, plan, view.now_ns);
        if (!arguments.name.empty()) {
          BERTH_TRY(queues, only(std::move(queues), arguments.name, view));
        }
        const bool one = !arguments.name.empty();
        return render(
            style, 0,
            [&] { return one ? one_text(queues.queues[0], queues) : all_text(queues, style); },
            [&] { return people::queue_view_json(queues, 2); },
            [&] { return one ? lines_csv(queues) : queues_csv(queues); });
      });
}

}  // namespace berth::app
