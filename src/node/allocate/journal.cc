#include "node/allocate/journal.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "text/decode.h"
#include "text/json.h"
#include "text/json_writer.h"

namespace berth::allocate {
namespace {

constexpr std::size_t kMaxLine = 4 * 1024 * 1024;  // all devices that can be offered, and room

// FNV-1a, 64 bits: every change of one byte changes it.
std::uint64_t checksum(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (char c : bytes) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return hash;
}

std::string hex(std::uint64_t value) {
  std::string out(16, '0');
  for (std::size_t i = out.size(); i-- > 0; value >>= 4) out[i] = "0123456789abcdef"[value & 15];
  return out;
}

constexpr text::Field<JournalEntry> kEntryFields[] = {
    text::required(text::field<&JournalEntry::at_ns>("at")),
    text::required(text::field<&JournalEntry::resource>("resource")),
    text::required(text::field<&JournalEntry::ids>("ids")),
    text::required(text::field<&JournalEntry::pod>("pod")),
    text::required(text::skip<JournalEntry>("sum")),
};

std::string line_of(const JournalEntry& entry) {
  text::JsonWriter out;
  out.object([&] {
    out.field("at", entry.at_ns);
    out.field("resource", entry.resource);
    out.list("ids", entry.ids);
    out.field("pod", entry.pod);
  });
  std::string body = std::move(out).take();
  body.pop_back();  // the sum is its last member
  const std::string sum = hex(checksum(body));
  return body + ",\"sum\":\"" + sum + "\"}\n";
}

// A line counts only when it is, byte for byte, what its entry is written as: then the checksum
// holds as well.
std::optional<JournalEntry> entry_of(std::string_view line) {
  if (line.size() > kMaxLine) return std::nullopt;
  auto document = text::parse_json(line, {.limits = {.max_depth = 2, .max_nodes = 100'000}});
  if (!document.ok()) return std::nullopt;
  text::Decoder d({.max_issues = 1});
  JournalEntry entry;
  decode_object(document->root(), kEntryFields, entry, d);
  if (!d.ok() || d.warnings() != 0) return std::nullopt;
  if (std::string again = line_of(entry);
      std::string_view(again).substr(0, again.size() - 1) != line) {
    return std::nullopt;
  }
  return entry;
}

std::string holder_of(const model::HeldDevices& held) {
  return held.ns + "/" + held.pod + "/" + held.container;
}

using Ids = std::set<std::string_view>;

// How well an entry goes with what a container holds; 0: not at all.
int likeness(const JournalEntry& entry, const Ids& ids, const model::HeldDevices& held,
             const Ids& held_ids) {
  if (entry.resource != held.resource ||
      !std::includes(held_ids.begin(), held_ids.end(), ids.begin(), ids.end())) {
    return 0;
  }
  if (entry.pod == holder_of(held)) return 3;
  return ids.size() == held_ids.size() ? 2 : 1;
}

}  // namespace

Journal Journal::read(std::string_view text) {
  Journal out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty()) continue;
    if (auto entry = entry_of(line)) {
      out.entries_.push_back(std::move(*entry));
    } else {
      ++out.damaged_;
    }
  }
  if (out.entries_.size() > kMaxJournal) {
    out.entries_.erase(out.entries_.begin(),
                       out.entries_.end() - static_cast<std::ptrdiff_t>(kMaxJournal));
  }
  return out;
}

std::string Journal::line(const JournalEntry& entry) const { return "\n" + line_of(entry); }

void Journal::add(JournalEntry entry) {
  if (entries_.size() >= kMaxJournal) entries_.erase(entries_.begin());
  entries_.push_back(std::move(entry));
}

bool Journal::reconcile(const std::vector<model::HeldDevices>& held, std::int64_t now_ns,
                        std::int64_t grace_ns) {
  std::vector<Ids> held_ids;
  held_ids.reserve(held.size());
  for (const model::HeldDevices& h : held) held_ids.emplace_back(h.ids.begin(), h.ids.end());
  std::vector<bool> taken(held.size(), false);
  std::vector<JournalEntry> kept;  // newest first
  bool changed = false;
  for (auto it = entries_.rbegin(); it != entries_.rend(); ++it) {
    const Ids ids(it->ids.begin(), it->ids.end());
    std::size_t best = held.size();
    int best_likeness = 0;
    for (std::size_t h = 0; h < held.size(); ++h) {
      if (taken[h]) continue;
      const int like = likeness(*it, ids, held[h], held_ids[h]);
      if (like > best_likeness) {
        best = h;
        best_likeness = like;
      }
    }
    if (best < held.size()) {
      taken[best] = true;
      std::string pod = holder_of(held[best]);
      changed = changed || pod != it->pod;
      it->pod = std::move(pod);
    } else {
      // A clock that was set back must not keep entries for ever.
      const auto now = static_cast<std::uint64_t>(now_ns);
      const auto at = static_cast<std::uint64_t>(it->at_ns);
      const std::uint64_t age = now_ns > it->at_ns ? now - at : at - now;
      if (age > static_cast<std::uint64_t>(std::max<std::int64_t>(grace_ns, 0))) {
        changed = true;
        continue;
      }
    }
    kept.push_back(std::move(*it));
  }
  entries_.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
  return changed;
}

std::string Journal::text() const {
  std::string out;
  for (const JournalEntry& entry : entries_) out += line_of(entry);
  return out;
}

}  // namespace berth::allocate
