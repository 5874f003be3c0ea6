// The ResourceQuotas of the server's namespaces: what each has in use, what is refused for it, and
// its status.
//
// The book follows what was written last (Storage's watcher), not what is committed: of two creates
// in one breath the second sees the first. What an object takes of a quota is kept by object, so a
// change costs that object alone; a write that the disk had no room for is taken back as any other
// change. A quota whose lines or scopes are new is counted a slice at a time and refuses nothing
// until it is counted, as one does that the real controller has not looked at.
//
// On the loop's thread. Cost: nothing in namespaces without quotas; in others a change of a pod,
// service or claim is parsed once and asked of each quota. Memory: some 600 bytes for each object
// and quota of one namespace.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "embedded/api/storage.h"
#include "rules/quota.h"

namespace berth::sim::api {

class QuotaBook {
 public:
  struct Ports {
    std::function<std::int64_t()> now_ns;
    std::function<void(std::function<void()>)> later;  // in another piece of work
    std::function<void(std::int64_t ns, std::function<void()>)> after;
    // The status of the quota at that key, unless it is gone.
    std::function<void(const std::string& key, const rules::Sums& hard, const rules::Sums& used)>
        write;
  };
  QuotaBook(Storage& storage, Ports ports);

  // What is at the key now; null: nothing.
  void moved(const Shelf& shelf, const std::string& key, const ObjectPtr& latest);
  // Everything that was restored from the disk.
  void start();
  // There was no room for what was written: every status is looked at again.
  void write_again();

  // Why the quotas of its namespace do not let the object be written; empty: they do. before: what
  // is there now, null for a create.
  std::string refusal(const Shelf& shelf, std::string_view ns, const Value& object,
                      const Value& before) const;

 private:
  struct Quota {
    text::Document document;
    rules::Sums hard, used;
    std::map<std::string, rules::Sums, std::less<>> taken;  // by shelf and key
    bool counted = false;
    std::uint64_t count = 0;  // which of the counts is under way

    const Value& root() const { return document.root(); }
    const rules::Sums& lines_of(std::string_view resource) const;  // of hard
    mutable std::map<std::string, rules::Sums, std::less<>> lines =
        {};  // those that were asked for
  };
  using Home = std::map<std::string, std::shared_ptr<Quota>, std::less<>>;  // by name
  struct Uncounted {
    const Shelf* shelf;
    std::string key;
  };

  bool has_quota(std::string_view key) const;
  void quota_moved(const std::string& key, const ObjectPtr& latest);
  void count(const std::string& key, const std::shared_ptr<Quota>& quota);
  void count_slice(const std::string& key, const std::shared_ptr<Quota>& quota,
                   std::shared_ptr<std::vector<Uncounted>> left, std::uint64_t number);
  bool charge(Quota& quota, const Shelf& shelf, const std::string& key, const ObjectPtr& latest,
              const Value& parsed) const;
  void charge_all(const Shelf& shelf, const std::string& key, const ObjectPtr& latest);
  void await_end(const Shelf& pods, const std::string& key, const Value& pod);
  void mark(const std::string& key);
  void flush();

  Storage& storage_;
  Ports ports_;
  std::map<std::string, Home, std::less<>> homes_;  // by namespace; of those that have quotas
  std::set<std::string> stale_;                     // keys of quotas whose status is behind
  std::map<std::string, std::int64_t> awaited_;     // pods that should be gone by then
  std::uint64_t counts_ = 0;
};

}  // namespace berth::sim::api
