#include "control/decision_line.h"

#include <fmt/format.h>

#include "kinds/queue_marks.h"
#include "text/json_writer.h"

namespace berth::control {

using text::JsonWriter;

std::string hex(std::uint64_t number) { return fmt::format("{:016x}", number); }

namespace {

class LineDigest {
 public:
  void add(std::string_view text) {
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
    add_byte(0);
  }
  void add(std::int64_t number) {
    for (int i = 0; i < 8; ++i) add_byte(static_cast<unsigned char>(number >> (8 * i)));
  }
  std::uint64_t value() const { return h_; }

 private:
  void add_byte(unsigned char c) { h_ = (h_ ^ c) * 0x100000001b3u; }
  std::uint64_t h_ = 0xcbf29ce484222325u;
};

void write_outcome(JsonWriter& out, const model::Outcome& o) {
  out.object([&] {
    out.field("workload", o.workload);
    out.field("gang", o.gang);
    out.field("verdict", model::name(o.verdict));
    out.field("reason", model::name(o.reason));
    out.field("message", o.message);
    out.field("pods", o.pods);
    out.field("placed", o.placed);
    out.field("queued", o.queued);
    out.field("queue", o.queue);
    out.field("position", o.position);
  });
}

void write_placement(JsonWriter& out, const model::Placement& p) {
  out.object([&] {
    out.field("pod", p.pod);
    out.field("node", p.node);
    out.array("gpus", [&] {
      for (const int gpu : p.gpus) out.value(gpu);
    });
    out.field("gang", p.gang);
    out.field("afterPreemption", p.after_preemption);
  });
}

template <class List, class F>
void write_list(JsonWriter& out, std::string_view name, const List& list, std::size_t most, F one) {
  out.array(name, [&] {
    for (std::size_t i = 0; i < list.size() && i < most; ++i) one(out, list[i]);
  });
}

}  // namespace

std::uint64_t decision_digest(const model::Decision& d) {
  LineDigest h;
  for (const auto& o : d.outcomes) {
    h.add(o.workload);
    h.add(static_cast<std::int64_t>(o.verdict));
    h.add(static_cast<std::int64_t>(o.reason));
    h.add(o.message);
    h.add(o.placed);
    h.add(o.position);
  }
  for (const auto& p : d.placements) {
    h.add(p.pod);
    h.add(p.node);
    for (const int gpu : p.gpus) h.add(gpu);
  }
  for (const auto& p : d.preemptions) {
    h.add(p.pod);
    h.add(p.by);
  }
  for (const auto& a : d.admissions) {
    h.add(a.workload);
    h.add(a.queue);
  }
  for (const auto& e : d.evictions) {
    h.add(e.workload);
    h.add(e.reason);
  }
  return h.value();
}

std::string decision_id(const DecisionLine& line, const model::Decision& d) {
  LineDigest id;
  id.add(static_cast<std::int64_t>(decision_digest(d)));
  id.add(static_cast<std::int64_t>(line.inputs));
  id.add(static_cast<std::int64_t>(line.cycle));
  return hex(id.value());
}

std::string decision_line(const DecisionLine& line, const model::Decision& d) {
  JsonWriter out;
  out.object([&] {
    out.field("id", decision_id(line, d));
    out.field("cycle", line.cycle);
    out.field("inputs", hex(line.inputs));
    write_list(out, "outcomes", d.outcomes, line.max_outcomes, write_outcome);
    if (d.outcomes.size() > line.max_outcomes) {
      out.field("outcomesLeftOut", d.outcomes.size() - line.max_outcomes);
    }
    write_list(out, "placements", d.placements, SIZE_MAX, write_placement);
    write_list(out, "preemptions", d.preemptions, SIZE_MAX,
               [](JsonWriter& w, const model::Preemption& p) {
                 w.object([&] {
                   w.field("pod", p.pod);
                   w.field("node", p.node);
                   w.field("by", p.by);
                   w.field("breaksBudget", p.breaks_budget);
                 });
               });
    write_list(out, "admissions", d.admissions, SIZE_MAX,
               [](JsonWriter& w, const model::Admission& a) {
                 w.object([&] {
                   w.field("workload", a.workload);
                   w.field("queue", a.queue);
                 });
               });
    write_list(out, "evictions", d.evictions, SIZE_MAX,
               [](JsonWriter& w, const model::Eviction& e) {
                 w.object([&] {
                   w.field("workload", e.workload);
                   w.field("by", e.by);
                   w.field("reason", e.reason);
                 });
               });
  });
  return std::move(out).take();
}

}  // namespace berth::control
