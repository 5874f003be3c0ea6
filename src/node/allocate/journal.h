// What was handed out, as lines of a file: written before the kubelet hears of it, read after a
// restart.
//
// Each line is a JSON object with a checksum; a torn or changed line is dropped and counted, the
// others hold. Pure: text in, text out; the caller writes the file. Bounded: entries that
// pod-resources no longer shows are dropped at reconcile(), and at most kMaxJournal are kept,
// oldest out first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/allocation.h"

namespace berth::allocate {

inline constexpr std::size_t kMaxJournal = 4'096;

struct JournalEntry {
  std::int64_t at_ns = 0;  // wall time
  std::string resource;
  std::vector<std::string> ids;
  std::string pod;  // "ns/name/container" once pod-resources told; empty: not yet
  friend bool operator==(const JournalEntry&, const JournalEntry&) = default;
};

class Journal {
 public:
  // Lines that could not be read are counted in damaged().
  static Journal read(std::string_view text);
  // To append. Ends with '\n' and begins with one: a torn line before it does not take it along.
  std::string line(const JournalEntry& entry) const;
  void add(JournalEntry entry);
  // What the kubelet says is the truth: entries get their pods, entries of devices that nobody
  // holds (or that a later entry was given since) and that are older than grace go. True when
  // something changed and the file should be rewritten. O(entries x held).
  bool reconcile(const std::vector<model::HeldDevices>& held, std::int64_t now_ns,
                 std::int64_t grace_ns);
  std::string text() const;  // the whole file
  const std::vector<JournalEntry>& entries() const { return entries_; }
  std::size_t damaged() const { return damaged_; }

 private:
  std::vector<JournalEntry> entries_;
  std::size_t damaged_ = 0;
};

}  // namespace berth::allocate
