// A local copy of one collection, kept by list and watch, that tells every change once, in order.
//
// Until the first list is complete synced() is false, and with kWhole the copy is empty and nothing
// is told. With kKeys the objects of that list are told as they come, page by page, and a list that
// is broken off and begun again may change or delete them; whoever decides waits for synced().
// After a gap (410, a broken watch) the differences are told at once, as ordinary changes. A
// handler added late is told what is here as additions.
//
// Writes of our own are seen at once: absorb() takes the object that the server answered; an event
// older than it does not take it back (versions are compared as numbers). absorb_removed() is for
// an object that is gone, not for one that only began to terminate. Objects of another kind or
// namespace are ignored, and so are objects that are not here yet where there is a selector:
// whether it holds is the server's to say. Everything runs on the loop's thread.
//
// Handlers may call anything here, also destroy the Informer. An object that was deleted and
// created again under its name is told as a deletion and an addition. Changes that a handler makes
// by absorb() are told after those that are on their way.
//
// Memory: what `keep` says. kKeys holds namespace, name, uid and version of each object and hands
// the document to the handlers only: for a consumer that keeps what it decoded. kWhole holds the
// document after `project`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "edge/kube/client.h"

namespace berth::kube {

struct Object {
  Key key;
  std::string uid;
  std::string version;
  text::Document document;  // null with Keep::kKeys, but in the call that tells of it

  const text::Value& root() const { return document.root(); }
};
using ObjectPtr = std::shared_ptr<const Object>;

enum class Keep : std::uint8_t { kWhole, kKeys };

struct InformerOptions {
  Resource resource;
  std::string ns = {};
  std::string label_selector = {}, field_selector = {};
  Keep keep = Keep::kWhole;
  // Top-level and metadata fields that nobody reads are dropped before an object is kept.
  std::vector<std::string> drop = {"metadata.managedFields"};
  bool watch_list = true;  // try sendInitialEvents first
  // A collection the server does not have (404): empty and synced, looked for again so often.
  std::int64_t absent_retry_ns = 30'000'000'000;
};

class Informer {
 public:
  // before is null for an addition, after for a deletion; then before is the last known state (with
  // kKeys the one that the deletion brought, if it did). A late handler with kKeys gets keys alone.
  using Handler = std::function<void(const ObjectPtr& before, const ObjectPtr& after)>;
  // The names an object is found by in an index.
  using IndexOf = std::function<std::vector<std::string>(const Object&)>;

  Informer(Client& client, Random random, InformerOptions options,
           MetricsRegistry* metrics = nullptr);
  ~Informer();
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  int add_index(IndexOf index_of);    // before start(); its number. kWhole only.
  void add_handler(Handler handler);  // late: told before this returns
  // Each time a list is complete, after its changes were told; at once when one is complete
  // already.
  void on_synced(const std::function<void()>& synced);
  void start();

  bool synced() const;
  bool absent() const;  // the server does not have this collection
  std::size_t size() const;
  ObjectPtr find(const Key& key) const;
  std::vector<ObjectPtr> all() const;                                       // by key
  std::vector<ObjectPtr> by_index(int index, std::string_view name) const;  // by key
  const std::string& version() const;     // the latest seen of the collection
  std::int64_t last_heard_ticks() const;  // when the stream last spoke; 0: never

  void absorb(text::Document written);
  void absorb_removed(const Key& key, std::string_view uid);

  const InformerOptions& options() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::kube
