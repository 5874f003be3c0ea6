// What cannot be read of objects that count (counted.h), pods left aside. Private to this folder.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "objects/gathered.h"

namespace berth::objects {

class UnreadBook {
 public:
  // Of the object as it is now; none: it is read in full, or it is gone. True: it is news.
  bool put(std::string_view kind, const std::string& key, std::vector<Note> notes) {
    const std::pair<std::string, std::string> at(kind, key);
    const auto it = notes_.find(at);
    if (it == notes_.end() ? notes.empty() : it->second == notes) return false;
    if (notes.empty()) {
      fresh_.erase(at);
      notes_.erase(it);
    } else {
      notes_[at] = std::move(notes);
      fresh_.insert(at);
    }
    return true;
  }
  void give(Gathered& to) const {
    for (const auto& [at, notes] : notes_) {
      ++to.counts.unread_objects;
      for (const Note& note : notes) to.warnings.add(note);
    }
  }
  // Those that are new since the last call.
  std::vector<Note> take_fresh() {
    std::vector<Note> out;
    for (const auto& at : std::exchange(fresh_, {})) {
      out.insert(out.end(), notes_[at].begin(), notes_[at].end());
    }
    return out;
  }
  void count(std::map<std::string, std::size_t>& by_kind) const {
    for (const auto& [at, notes] : notes_) ++by_kind[at.first];
  }

 private:
  std::map<std::pair<std::string, std::string>, std::vector<Note>> notes_;  // by kind and key
  std::set<std::pair<std::string, std::string>> fresh_;
};

}  // namespace berth::objects
