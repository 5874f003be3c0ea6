// The copy itself: which objects there are, what changed, who is told. No wire, no clock.
//
// edge/kube/informer.cc owns one and feeds it; it keeps the promises of informer.h about order,
// indices, writes of our own and late handlers. Changes are queued and told by deliver(), one after
// another to every handler, so that a handler which changes the copy itself does not make the
// others see things in another order.
#pragma once

#include <deque>
#include <map>

#include "edge/kube/informer.h"

namespace berth::kube {

// Null: the object has no name or belongs to another kind.
std::shared_ptr<Object> make_object(text::Document document);

class CopyStore {
 public:
  explicit CopyStore(const InformerOptions& options) : options_(options) {}

  int add_index(Informer::IndexOf index_of);
  void add_handler(Informer::Handler handler);  // queues what is here as additions
  void add_synced(std::function<void()> synced);

  // ---- from the stream ----
  // Collecting begins, or begins again. What was collected is forgotten, but for what was told
  // already: with Keep::kKeys the objects of the first list are told as they come, so that their
  // documents need not be held, and those that the complete list does not have are taken back.
  void begin();
  bool collect(text::Document object, std::int64_t now);  // false: not of this collection
  void uncollect(const text::Value& object);
  // What was collected is the collection as of that version.
  void replace(std::string_view version, std::int64_t now);
  void clear(std::int64_t now);  // the collection does not exist
  bool put(text::Document object, std::int64_t now);
  bool remove(text::Document object);
  // A list's item: a copy is made unless the object is here already.
  bool collect_item(const text::Value& item, std::string_view api_version, std::string_view kind,
                    std::int64_t now);

  // ---- our own writes ----
  // told: the version up to which the stream has told everything. What is not newer is ignored: it
  // may be gone again by now.
  void absorb(text::Document object, std::string_view told, std::int64_t now);
  void absorb_removed(const Key& key, std::string_view uid);

  // Tells what is queued, unless that is happening already further up the stack. stopped() is asked
  // after each call: the owner may be gone.
  void deliver(const std::function<bool()>& stopped);

  bool synced() const { return synced_; }
  std::size_t size() const { return held_.size(); }
  ObjectPtr find(const Key& key) const;
  std::vector<ObjectPtr> all() const;
  std::vector<ObjectPtr> by_index(int index, std::string_view name) const;

 private:
  struct Held {
    ObjectPtr object;
    std::int64_t absorbed_at = 0;  // 0: the stream told of this version
    std::uint64_t round = 0;       // of the first list: when it was last seen
  };
  struct Index {
    Informer::IndexOf of;
    std::map<std::string, std::map<Key, ObjectPtr>, std::less<>> names;
  };
  struct Slot {
    Informer::Handler handler;
    std::uint64_t from;  // told of what was queued since
  };
  struct Tell {
    ObjectPtr before, after;  // both null: a list is complete
    std::uint64_t number = 0;
    int only = -1;  // one handler alone
  };
  using HeldMap = std::map<Key, Held>;

  bool tells_early() const { return options_.keep == Keep::kKeys && !synced_; }
  void take_early(std::shared_ptr<Object> object, std::int64_t now);
  void finish_early(std::string_view version, std::int64_t now);
  void swap_in(std::string_view version, std::int64_t now);
  bool known(const Object& object) const;  // this very version is here
  void project(Object& object) const;
  bool guarded(const Held& held, std::int64_t now) const;
  bool buried(const Object& object) const;
  void set(HeldMap::iterator at, std::shared_ptr<Object> object, std::int64_t absorbed_at);
  void insert(std::shared_ptr<Object> object, std::int64_t absorbed_at);
  void erase(HeldMap::iterator at, ObjectPtr told);
  void take(std::shared_ptr<Object> object, std::int64_t now, bool absorbed);
  void index_out(const ObjectPtr& object);
  void index_in(const ObjectPtr& object);
  void tell(ObjectPtr before, ObjectPtr after, int only = -1);
  ObjectPtr kept(const std::shared_ptr<Object>& object) const;

  const InformerOptions& options_;
  HeldMap held_;
  std::map<Key, std::shared_ptr<Object>> collected_;
  std::map<Key, std::string> removed_;  // uid of what we removed and the stream still shows
  std::map<Key, std::shared_ptr<Object>> early_;  // absorbed before the first list
  std::vector<Index> indices_;
  std::deque<Slot> handlers_;
  std::deque<std::function<void()>> synced_calls_;
  std::deque<Tell> tells_;
  std::uint64_t told_ = 0;
  std::uint64_t round_ = 1;  // how often the first list was begun
  bool telling_ = false;
  bool synced_ = false;
};

}  // namespace berth::kube
