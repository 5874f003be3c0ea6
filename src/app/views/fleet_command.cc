#include "app/views/fleet_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "app/views/doctor.h"
#include "app/views/gpu_loads.h"
#include "people/view/fleet.h"
#include "people/view/queue_view.h"
#include "people/view/words.h"
#include "text/escape.h"
#include "text/json_writer.h"

namespace berth::app {

namespace {

using people::Fleet;
using people::FleetGpu;
using people::FleetNode;
using people::GpuState;
using people::GpuTally;
using people::show_count;
using people::show_milli;

constexpr std::size_t kTopProblems = 5;
constexpr std::size_t kBarWidth = 64;

struct Seen {
  people::PlanResult plan;
  Fleet fleet;
  people::QueueView queues;
};

Seen see(const ClusterView& view) {
  Seen out;
  people::PlanOptions options;
  options.now_ns = view.now_ns;
  out.plan = people::make_plan(view.inputs, options);
  out.fleet = people::make_fleet(view.inputs, out.plan, view.now_ns);
  out.queues = people::make_queue_view(view.inputs, out.plan, view.now_ns);
  return out;
}

const char* cell_of(GpuState state) {
  switch (state) {
    case GpuState::kUsed:
      return "■";
    case GpuState::kFree:
      return "□";
    case GpuState::kUnhealthy:
      return "x";
    case GpuState::kReserved:
      return "-";
    case GpuState::kUnknown:
      return "?";
  }
  return " ";
}

std::string painted(GpuState state, const std::string& text, const Paint& paint) {
  if (state == GpuState::kUnhealthy) return paint.red(text);
  if (state == GpuState::kFree) return paint.green(text);
  if (state == GpuState::kUsed) return text;
  return paint.yellow(text);
}

// A cell for each GPU, or shares of the bar where there are more; a state that occurs has a cell.
std::string bar_of(const GpuTally& tally, const Paint& paint) {
  const std::pair<GpuState, int> kParts[] = {{GpuState::kUsed, tally.used},
                                             {GpuState::kFree, tally.free},
                                             {GpuState::kUnhealthy, tally.unhealthy},
                                             {GpuState::kReserved, tally.reserved},
                                             {GpuState::kUnknown, tally.unknown}};
  const auto all = static_cast<std::size_t>(tally.discovered());
  std::size_t left = std::min(all, kBarWidth);
  std::string out;
  std::size_t gone = 0;
  for (const auto& [state, count] : kParts) {
    if (count == 0) continue;
    gone += static_cast<std::size_t>(count);
    std::size_t cells = static_cast<std::size_t>(count);
    if (all > kBarWidth) cells = std::max<std::size_t>(1, cells * kBarWidth / all);
    if (gone == all) cells = left;  // the last one takes what rounding left over
    cells = std::min(cells, left);
    left -= cells;
    std::string part;
    for (std::size_t i = 0; i < cells; ++i) part += cell_of(state);
    out += painted(state, part, paint);
  }
  return out;
}

std::string states_line(const GpuTally& tally) {
  return fmt::format("used {}   free {}   unhealthy {}   reserved {}   unknown {}   = {}",
                     tally.used, tally.free, tally.unhealthy, tally.reserved, tally.unknown,
                     tally.discovered());
}

std::string room_line(const people::FleetRoom& room) {
  std::string sizes;
  for (const auto& gang : room.gangs) {
    if (gang.pods > 0) {
      sizes += fmt::format("{}{}x{}", sizes.empty() ? "" : ", ", gang.pods, gang.gpus_per_pod);
    }
  }
  std::string out = fmt::format("{}: {} free", people::short_model(room.model), room.free);
  if (room.free == 0) return out;
  out += fmt::format(", {} on one node", room.largest_node);
  if (!room.rack.empty()) out += fmt::format(", {} in {}", room.largest_rack, room.rack);
  return out + "; pods x GPUs " + sizes;
}

std::string waiting_lines(const Fleet& fleet) {
  std::int64_t milli = 0;
  for (const auto& reason : fleet.reasons) milli += reason.gpus_milli;
  std::string out = fmt::format(
      "waiting    {}", show_count(static_cast<std::int64_t>(fleet.waiting.size()), "workload"));
  if (milli > 0) out += fmt::format(", {} GPUs", show_milli(milli));
  if (fleet.startable > 0) out += fmt::format("; {} more can start now", fleet.startable);
  out += '\n';
  for (const auto& reason : fleet.reasons) {
    out += fmt::format("  {:<24} {:>3} {:<10} {:>5} GPUs", model::name(reason.reason),
                       reason.workloads, reason.workloads == 1 ? "workload" : "workloads",
                       show_milli(reason.gpus_milli));
    if (reason.oldest_ns != 0) out += "   oldest " + show_age(fleet.now_ns - reason.oldest_ns);
    out += '\n';
  }
  return out;
}

std::string oldest_lines(const Seen& seen) {
  std::string out;
  for (const people::QueueRow& row : seen.queues.queues) {
    if (row.oldest_ns == 0) continue;
    out += (out.empty() ? "" : ", ") + text::terminal_safe(row.name) + ' ' +
           show_age(seen.fleet.now_ns - row.oldest_ns);
  }
  return out.empty() ? "" : "oldest     " + wrapped(out, 11) + '\n';
}

std::string finding_lines(const Finding& finding, const Paint& paint) {
  const std::string word = people::padded(std::string(name(finding.severity)), 7);
  const std::string shown = finding.severity == Severity::kError     ? paint.red(word)
                            : finding.severity == Severity::kWarning ? paint.yellow(word)
                                                                     : paint.faint(word);
  return shown + "  " + wrapped(finding.object + ": " + finding.message, 9) + '\n';
}

std::string status_text(const ClusterView& view, const Seen& seen, const ViewStyle& style) {
  const Fleet& fleet = seen.fleet;
  const GpuTally& total = fleet.total;
  std::string out =
      wrapped(fmt::format("{} on {}, {} with GPUs; {}", show_count(total.discovered(), "GPU"),
                          show_count(total.nodes, "node"), show_count(fleet.gpu_pods, "pod"),
                          view.source),
              0) +
      '\n';
  if (total.discovered() > 0) out += bar_of(total, style.paint) + '\n';
  out += states_line(total) + '\n';
  if (total.unhealthy_held > 0) {
    out += fmt::format("of the unhealthy {} still held by pods\n", total.unhealthy_held);
  }
  out += '\n';
  for (const auto& room : fleet.rooms) out += "fits now   " + wrapped(room_line(room), 11) + '\n';
  out += waiting_lines(fleet) + oldest_lines(seen);
  const Diagnosis diagnosis = diagnose({view, fleet, seen.queues});
  std::vector<Finding> problems = diagnosis.findings;
  std::erase_if(problems, [](const Finding& f) { return f.severity == Severity::kInfo; });
  if (problems.empty()) return out + "\nno problems found\n";
  out += fmt::format("\nPROBLEMS ({} of {}; {} doctor says what to do)\n",
                     std::min(problems.size(), kTopProblems), problems.size(), style.program);
  for (std::size_t i = 0; i < problems.size() && i < kTopProblems; ++i) {
    out += finding_lines(problems[i], style.paint);
  }
  return out;
}

Sheet states_sheet(const Fleet& fleet) {
  Sheet sheet{{{"MODEL"},
               {"NODES"},
               {"GPUS"},
               {"USED"},
               {"FREE"},
               {"UNHEALTHY"},
               {"RESERVED"},
               {"UNKNOWN"}},
              {}};
  for (const people::FleetGroup& group : fleet.models) {
    const GpuTally& t = group.tally;
    std::vector<std::string> row = {group.name};
    for (const int n :
         {t.nodes, t.discovered(), t.used, t.free, t.unhealthy, t.reserved, t.unknown}) {
      row.push_back(std::to_string(n));
    }
    sheet.rows.push_back(std::move(row));
  }
  return sheet;
}

// ---- gpus ----

std::string node_state(const FleetNode& node) {
  std::string out = node.ready ? "ready" : "not ready";
  if (node.cordoned) out += ", cordoned";
  if (!node.taints.empty()) out += ", tainted";
  return out;
}

// "web/api-6c5f7-0" is one of "web/api-6c5f7".
std::string kin_of(const std::string& pod) {
  const std::size_t dash = pod.rfind('-');
  return dash == std::string::npos || dash < pod.find('/') ? pod : pod.substr(0, dash);
}

// Pods that differ in the end of their names, and hold the same, are told together.
std::string holders_of(const FleetNode& node) {
  std::vector<std::pair<std::string, int>> kin;  // with how many
  std::map<std::pair<std::string, int>, std::size_t> places;
  std::vector<const people::FleetHolder*> first;
  for (const people::FleetHolder& holder : node.holders) {
    const auto [it, fresh] =
        places.emplace(std::pair(kin_of(holder.pod), holder.milli), kin.size());
    if (fresh) {
      kin.emplace_back(kin_of(holder.pod), 0);
      first.push_back(&holder);
    }
    ++kin[it->second].second;
  }
  std::string out;
  for (std::size_t i = 0; i < kin.size(); ++i) {
    const auto& [name, count] = kin[i];
    out += (out.empty() ? "" : ", ") + text::terminal_safe(count == 1 ? first[i]->pod : name);
    if (count > 1) out += fmt::format(" x{}", count);
    if (first[i]->milli != model::kMilliPerGpu) out += " (" + show_milli(first[i]->milli) + ')';
  }
  return out;
}

// Of the GPUs whose agents answered; -1: none did.
struct NodeLoad {
  int busy = -1, memory = -1;  // per cent
};

NodeLoad load_of(const FleetNode& node) {
  std::int64_t busy = 0, measured = 0, used = 0, all = 0;
  for (const FleetGpu& gpu : node.gpus) {
    if (gpu.busy_percent >= 0) {
      busy += gpu.busy_percent;
      ++measured;
    }
    if (gpu.memory_mib > 0) {
      used += gpu.memory_used_mib;
      all += gpu.memory_mib;
    }
  }
  constexpr std::int64_t kWhole = 100;
  NodeLoad out;
  if (measured > 0) out.busy = static_cast<int>(busy / measured);
  if (all > 0) out.memory = static_cast<int>(used * kWhole / all);
  return out;
}

std::string percent(int value) { return value < 0 ? "-" : fmt::format("{} %", value); }

std::string cells_of(const FleetNode& node, std::size_t from, std::size_t count,
                     const Paint& paint) {
  std::string out;
  for (std::size_t i = from; i < from + count; ++i) {
    out += painted(node.gpus[i].state, cell_of(node.gpus[i].state), paint);
  }
  return out;
}

std::string kind_of(const FleetNode& node) {
  return fmt::format("{} x{}", people::short_model(node.model), node.gpus.size());
}

std::string device_line(const FleetGpu& gpu, const Paint& paint) {
  std::vector<std::string> parts;
  if (!gpu.why.empty()) parts.push_back(gpu.why);
  if (gpu.busy_percent >= 0) parts.push_back(fmt::format("{} % busy", gpu.busy_percent));
  if (gpu.memory_mib > 0) {
    constexpr int kMibPerGib = 1024, kHalf = kMibPerGib / 2;
    parts.push_back(fmt::format("{} of {} GiB", (gpu.memory_used_mib + kHalf) / kMibPerGib,
                                (gpu.memory_mib + kHalf) / kMibPerGib));
  }
  const bool part = gpu.used_milli > 0 && gpu.used_milli < model::kMilliPerGpu;
  if (gpu.mig_slots > 0) {
    parts.push_back(fmt::format("{} of {} slices", gpu.mig_used, gpu.mig_slots));
  } else if (part) {
    parts.push_back(show_milli(gpu.used_milli) + " of it");
  }
  std::string pods;
  for (const std::string& pod : gpu.pods) pods += (pods.empty() ? "" : ", ") + pod;
  if (!pods.empty()) parts.push_back(std::move(pods));
  std::string what;
  for (const std::string& one : parts) what += (what.empty() ? "" : "; ") + one;
  constexpr std::size_t kIndent = 21;
  std::string line = fmt::format("      {:>2}  ", gpu.index) +
                     painted(gpu.state, fmt::format("{:<9}", people::name(gpu.state)), paint);
  if (!what.empty()) {
    line += "  " + text::elide_middle(text::terminal_safe(what), kScreenWidth - kIndent);
  }
  while (line.ends_with(' ')) line.pop_back();
  return line + '\n';
}

// Columns of the tree, wide enough for all nodes.
struct TreeWidths {
  std::size_t name = 4, kind = 4, cells = 1;
};

TreeWidths tree_widths(const Fleet& fleet) {
  constexpr std::size_t kMostName = 24, kMostKind = 16;
  TreeWidths out;
  for (const FleetNode& node : fleet.nodes) {
    if (node.gpus.empty()) continue;
    out.name = std::max(out.name, people::width_of(text::terminal_safe(node.name)));
    out.kind = std::max(out.kind, people::width_of(kind_of(node)));
    out.cells = std::max(out.cells, node.gpus.size());
  }
  out.name = std::min(out.name, kMostName);
  out.kind = std::min(out.kind, kMostKind);
  return out;
}

// "  n0  H100 x8  ■■■■■■□□  web/api x5, web/embed-0        64 % busy": what is known of the load
// stands at the right; more cells than a line has room for go on below.
std::string tree_line(const FleetNode& node, const TreeWidths& widths, bool loads,
                      const Paint& paint) {
  constexpr std::size_t kMostCells = 16, kLoadWidth = 12;
  const std::size_t cells = std::min(widths.cells, kMostCells);
  const std::size_t used = 2 + widths.name + 2 + widths.kind + 2 + cells + 2;
  const std::size_t room = kScreenWidth - used - (loads ? kLoadWidth : 0);
  std::string who = holders_of(node);
  if (!node.ready || node.cordoned) who = node_state(node) + (who.empty() ? "" : "; " + who);
  who = people::fit(who, room);
  if (loads) {
    const int busy = load_of(node).busy;
    who += people::padded_left(busy < 0 ? "-" : fmt::format("{} % busy", busy), kLoadWidth);
  }
  const std::string start =
      "  " + people::fit(node.name, widths.name) + "  " + people::fit(kind_of(node), widths.kind);
  std::string out;
  for (std::size_t from = 0; from < node.gpus.size(); from += kMostCells) {
    const std::size_t count = std::min(kMostCells, node.gpus.size() - from);
    std::string line = from == 0 ? start : std::string(2 + widths.name + 2 + widths.kind, ' ');
    line += "  " + cells_of(node, from, count, paint);
    if (from == 0) line += std::string(cells - count + 2, ' ') + who;
    while (line.ends_with(' ')) line.pop_back();
    out += line + '\n';
  }
  return out;
}

std::string tree_text(const GpusArguments& arguments, const Fleet& fleet, bool loads,
                      const Paint& paint) {
  const TreeWidths widths = tree_widths(fleet);
  std::string out;
  for (const auto& group :
       fleet.racks.empty() ? std::vector<people::FleetGroup>{{"", fleet.total}} : fleet.racks) {
    if (!fleet.racks.empty()) {
      const std::string count = "  " + show_count(group.tally.discovered(), "GPU") +
                                fmt::format(", {} used", group.tally.used);
      const std::string name = group.name.empty() ? "(no rack)" : text::terminal_safe(group.name);
      out += text::elide_middle(name, kScreenWidth - people::width_of(count)) + count + '\n';
    }
    for (const FleetNode& node : fleet.nodes) {
      if (node.gpus.empty() || (!fleet.racks.empty() && node.rack != group.name)) continue;
      out += tree_line(node, widths, loads, paint);
      if (!arguments.devices) continue;
      for (const FleetGpu& gpu : node.gpus) out += device_line(gpu, paint);
    }
  }
  return out + states_line(fleet.total) + '\n';
}

// Columns that say nothing in any line leave their room to the names.
void drop_silent(Sheet& sheet, const std::vector<std::string_view>& heads) {
  for (std::size_t c = sheet.columns.size(); c-- > 0;) {
    const bool may = std::find(heads.begin(), heads.end(), sheet.columns[c].head) != heads.end();
    const bool silent = std::all_of(sheet.rows.begin(), sheet.rows.end(), [c](const auto& row) {
      return row[c].empty() || row[c] == "-";
    });
    if (!may || !silent) continue;
    sheet.columns.erase(sheet.columns.begin() + static_cast<std::ptrdiff_t>(c));
    for (auto& row : sheet.rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(c));
  }
}

bool any_load(const Fleet& fleet) {
  return std::any_of(fleet.nodes.begin(), fleet.nodes.end(), [](const FleetNode& node) {
    const NodeLoad load = load_of(node);
    return load.busy >= 0 || load.memory >= 0;
  });
}

Sheet nodes_sheet(const Fleet& fleet, bool loads) {
  Sheet sheet{{{"NODE", false, true, 12},
               {"MODEL", false, true, 6},
               {"RACK", false, true, 6},
               {"GPUS", true},
               {"USED", true},
               {"FREE", true},
               {"BAD", true}},
              {}};
  if (loads) {
    sheet.columns.push_back({"BUSY", true});
    sheet.columns.push_back({"MEM", true});
  }
  sheet.columns.push_back({"STATE", false, true, 7});
  sheet.columns.push_back({"PODS", false, true, 8});
  for (const FleetNode& node : fleet.nodes) {
    if (node.gpus.empty()) continue;
    const GpuTally& t = node.tally;
    std::vector<std::string> row = {node.name, people::short_model(node.model), node.rack};
    for (const int n : {t.discovered(), t.used, t.free, t.unhealthy + t.reserved + t.unknown}) {
      row.push_back(std::to_string(n));
    }
    if (loads) {
      const NodeLoad load = load_of(node);
      row.insert(row.end(), {percent(load.busy), percent(load.memory)});
    }
    row.insert(row.end(), {node_state(node), holders_of(node)});
    sheet.rows.push_back(std::move(row));
  }
  drop_silent(sheet, {"RACK", "BUSY", "MEM"});
  return sheet;
}

Sheet devices_sheet(const Fleet& fleet) {
  Sheet sheet{{{"NODE"},
               {"GPU"},
               {"MODEL"},
               {"UUID"},
               {"STATE"},
               {"USED MILLI"},
               {"MIG SLOTS"},
               {"MIG USED"},
               {"RACK"},
               {"POOL"},
               {"PODS"},
               {"WHY"},
               {"BUSY PERCENT"},
               {"MEMORY USED MIB"},
               {"MEMORY MIB"}},
              {}};
  const auto measured = [](int value) { return value < 0 ? "" : std::to_string(value); };
  for (const FleetNode& node : fleet.nodes) {
    for (const FleetGpu& gpu : node.gpus) {
      std::string pods;
      for (const std::string& pod : gpu.pods) pods += (pods.empty() ? "" : " ") + pod;
      sheet.rows.push_back({node.name, std::to_string(gpu.index), gpu.model, gpu.uuid,
                            std::string(people::name(gpu.state)), std::to_string(gpu.used_milli),
                            std::to_string(gpu.mig_slots), std::to_string(gpu.mig_used), node.rack,
                            node.pool, pods, gpu.why, measured(gpu.busy_percent),
                            measured(gpu.memory_used_mib), measured(gpu.memory_mib)});
    }
  }
  return sheet;
}

// ---- doctor ----

std::string doctor_text_of(const Diagnosis& diagnosis, const ClusterView& view,
                           const ViewStyle& style) {
  std::string out;
  for (const Finding& finding : diagnosis.findings) {
    out += finding_lines(finding, style.paint);
    out += "         " + wrapped("do: " + finding.fix + "  [" + finding.id + ']', 9) + '\n';
  }
  if (!out.empty()) out += '\n';
  const std::string where = text::terminal_safe(view.source);
  if (diagnosis.errors + diagnosis.warnings == 0) {
    return out + fmt::format("{}: {} checks of {}\n",
                             diagnosis.skipped.empty() ? "healthy" : "healthy, as far as was seen",
                             diagnosis.checks.size(), where);
  }
  return out +
         wrapped(
             fmt::format("{}, {} ({} checks of {}); docs/doctor.md explains each",
                         show_count(diagnosis.errors, "error"),
                         show_count(diagnosis.warnings, "warning"), diagnosis.checks.size(), where),
             0) +
         '\n';
}

std::string doctor_json(const Diagnosis& diagnosis) {
  text::JsonWriter out({.indent = 2});
  out.object([&] {
    out.field("version", "berth.dev/doctor/v1");
    out.field("errors", diagnosis.errors);
    out.field("warnings", diagnosis.warnings);
    out.array("findings", [&] {
      for (const Finding& finding : diagnosis.findings) {
        out.object([&] {
          out.field("id", finding.id);
          out.field("severity", name(finding.severity));
          out.field("object", finding.object);
          out.field("message", finding.message);
          out.field("fix", finding.fix);
          out.field("docs", "docs/doctor.md#" + finding.id);
        });
      }
    });
    const auto names = [&out](std::string_view key, const std::vector<std::string>& all) {
      out.list(key, all);
    };
    names("checks", diagnosis.checks);
    names("notSeen", diagnosis.skipped);
  });
  return std::move(out).take();
}

Sheet doctor_sheet(const Diagnosis& diagnosis) {
  Sheet sheet{{{"SEVERITY"}, {"ID"}, {"OBJECT"}, {"MESSAGE"}, {"FIX"}}, {}};
  for (const Finding& f : diagnosis.findings) {
    sheet.rows.push_back({std::string(name(f.severity)), f.id, f.object, f.message, f.fix});
  }
  return sheet;
}

}  // namespace

int status_command(const ViewArguments& arguments, Terminal& terminal) {
  return show_view(arguments, terminal,
                   [](const ClusterView& view, const ViewStyle& style) -> Result<Screen> {
                     BERTH_CHECK(view.sees("nodes"));
                     const Seen seen = see(view);
                     return render(
                         style, 0, [&] { return status_text(view, seen, style); },
                         [&] { return people::fleet_json(seen.fleet, 2); },
                         [&] { return states_sheet(seen.fleet); });
                   });
}

int gpus_command(const GpusArguments& arguments, Terminal& terminal) {
  return show_view(arguments.show, terminal,
                   [&](const ClusterView& view, const ViewStyle& style) -> Result<Screen> {
                     BERTH_CHECK(view.sees("nodes"));
                     Seen seen = see(view);
                     ask_loads(arguments.show.view, view, terminal, seen.fleet);
                     const bool loads = !view.saved;
                     const auto table = [&]() -> std::string {
                       if (seen.fleet.total.discovered() == 0) return "no GPUs found\n";
                       if (arguments.tree || arguments.devices) {
                         return tree_text(arguments, seen.fleet, loads, style.paint);
                       }
                       return table_text(nodes_sheet(seen.fleet, loads)) +
                              states_line(seen.fleet.total) + '\n' +
                              (loads && !any_load(seen.fleet)
                                   ? "how busy they are nobody said: no agent answered\n"
                                   : "");
                     };
                     return render(
                         style, 0, table, [&] { return people::fleet_json(seen.fleet, 2); },
                         [&] { return devices_sheet(seen.fleet); });
                   });
}

int doctor_command(const ViewArguments& arguments, Terminal& terminal) {
  return show_view(
      arguments, terminal, [](const ClusterView& view, const ViewStyle& style) -> Result<Screen> {
        const Seen seen = see(view);
        const Diagnosis diagnosis = diagnose({view, seen.fleet, seen.queues});
        constexpr int kWarnings = 10, kErrors = 40;
        const int code = diagnosis.errors > 0 ? kErrors : diagnosis.warnings > 0 ? kWarnings : 0;
        return render(
            style, code, [&] { return doctor_text_of(diagnosis, view, style); },
            [&] { return doctor_json(diagnosis); }, [&] { return doctor_sheet(diagnosis); });
      });
}

}  // namespace berth::app
