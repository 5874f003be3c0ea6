// What cannot be read of objects that count (counted.h), pods left aside. Private to this folder.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kinds/gathered.h"

namespace berth::kinds {

class UnreadBook {
 public:
  static constexpr std::size_t kMostNotes = 8;  // of one object

  // Of the object as it is now; none: it is read in full, or it is gone. invalid: these are errors,
  // not warnings. True: it is news.
  bool put(std::string_view kind, const std::string& key, std::vector<Note> notes, bool invalid) {
    const At at(kind, key);
    if (notes.size() > kMostNotes) notes.resize(kMostNotes);
    const auto it = entries_.find(at);
    if (it == entries_.end() ? notes.empty() : it->second.notes == notes) return false;
    if (notes.empty()) {
      fresh_.erase(at);
      entries_.erase(it);
    } else {
      entries_[at] = {std::move(notes), invalid};
      fresh_.insert(at);
    }
    return true;
  }
  void give(Gathered& to) const {
    for (const auto& [at, entry] : entries_) {
      ++(entry.invalid ? to.counts.invalid_objects : to.counts.unread_objects);
      for (const Note& note : entry.notes) (entry.invalid ? to.invalid : to.warnings).add(note);
    }
  }
  // Those that are new since the last call.
  std::vector<Note> take_fresh() {
    std::vector<Note> out;
    for (const At& at : std::exchange(fresh_, {})) {
      const std::vector<Note>& notes = entries_.at(at).notes;
      out.insert(out.end(), notes.begin(), notes.end());
    }
    return out;
  }
  void count(std::map<std::string, std::size_t>& by_kind) const {
    for (const auto& [at, entry] : entries_) ++by_kind[at.first];
  }

 private:
  using At = std::pair<std::string, std::string>;  // kind and key
  struct Entry {
    std::vector<Note> notes;
    bool invalid = false;
  };
  std::map<At, Entry> entries_;
  std::set<At> fresh_;
};

}  // namespace berth::kinds
