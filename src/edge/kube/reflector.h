// How a collection is followed, as a state machine without I/O: what came from the wire goes in,
// what to do with the copy and what to ask next comes out. edge/kube/informer.cc drives it.
//
//   start ──► WatchList ──(initial-events-end)──► watching ──EOF──► watching again from the last
//   version
//      └────► LIST ──(last page)────────────────►    │  410: back to the start; 429, refused: wait,
//      watch
//
// Versions: the first list asks for "0" (the server's cache), a later one for the last version seen
// and without a limit; when the server says that is expired or too large, at once "" (from the
// store) in pages of 500. The last version is taken from every event and bookmark, but not from the
// initial events of a WatchList nor from a watch begun at "" or "0" before its first event that is
// not ADDED: those come in no order.
//
// Nothing here is trusted: an unknown event type, an object without a name or an unreadable line
// ends the stream, and after a wait everything is listed again.
//
// One owner, no clock: each input carries the monotonic time. O(1) per input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/random.h"
#include "edge/kube/backoff.h"
#include "text/value.h"

namespace berth::kube {

struct ReflectorOptions {
  bool watch_list = true;
  int page_size = 500;
  std::int64_t min_timeout_s = 300, max_timeout_s = 600;  // of a watch, drawn for each
  std::int64_t idle_margin_ns = 5'000'000'000;            // after that timeout the stream is dead
  std::int64_t very_short_ns = 1'000'000'000;  // a watch that ends sooner, without events: wait
  // A WatchList that is silent so long before its end mark: the server does not know it. LIST then.
  std::int64_t initial_silence_ns = 30'000'000'000;
  std::int64_t absent_retry_ns = 30'000'000'000;
  int failures_before_list = 5;  // watches in a row that came to nothing
  BackoffOptions backoff = {};
};

enum class WatchType : std::uint8_t { kAdded, kModified, kDeleted, kBookmark, kError, kUnknown };
WatchType watch_type_of(std::string_view type);  // "ADDED", ...

// What to do with the copy, in this order.
struct CopyChange {
  bool begin = false;    // forget what was collected
  bool collect = false;  // this event or page belongs to what is being collected
  bool replace = false;  // what was collected is the collection now
  bool apply = false;    // this event is a change of the copy
  bool absent = false;   // the collection does not exist: the copy is empty
};

// What to ask next. kGoOn: go on listening. Everything else ends a stream that is still open.
struct NextStep {
  enum Kind : std::uint8_t { kGoOn, kList, kWatch, kWait };
  Kind kind = kGoOn;
  std::string version;                      // resourceVersion; of a list also with next
  std::string next;                         // list: continue
  int limit = 0;                            // list: 0 is none
  bool send_initial = false;                // watch: a WatchList
  std::int64_t timeout_s = 0, idle_ns = 0;  // watch
  std::int64_t wait_ns = 0;                 // then call timer()
  std::int64_t check_ns = 0;  // watch, not 0: call check_initial() after so long, if still open
  const char* why = "";       // of a restart, one word: for the metric
};

struct ReflectorStep {
  CopyChange change;
  NextStep next;
};

// What is wrong with an answer, or with an ERROR event.
struct WireFailure {
  int status = 0;          // 0: no answer
  bool refused = false;    // nobody listened
  bool too_large = false;  // the version asked for is not yet known there
  std::int64_t retry_after_ns = 0;
};

class Reflector {
 public:
  Reflector(ReflectorOptions options, Random random);

  ReflectorStep start();
  // A page of the list came.
  ReflectorStep listed(std::int64_t now, std::string_view version, std::string_view next);
  ReflectorStep list_failed(std::int64_t now, const WireFailure& failure);
  // The watch was answered with a good status.
  void watch_opened(std::int64_t now);
  // An event; object is the Status of an ERROR, which is also given as a failure.
  ReflectorStep event(std::int64_t now, WatchType type, const text::Value& object,
                      const WireFailure& failure);
  ReflectorStep watch_failed(std::int64_t now, const WireFailure& failure);  // instead of opened
  // The stream ended after it was opened; broken: not by the server's will.
  ReflectorStep watch_ended(std::int64_t now, bool broken);
  ReflectorStep unreadable(std::int64_t now);  // a line that is no event
  ReflectorStep check_initial(std::int64_t now);
  ReflectorStep timer(std::int64_t now);

  const std::string& version() const { return version_; }  // "": none yet

 private:
  enum class Phase : std::uint8_t { kIdle, kListing, kInitial, kWatching, kWaiting };

  NextStep sync(const char* why);  // WatchList, or LIST
  NextStep list(const char* why);
  NextStep watch(const char* why);
  NextStep wait(std::int64_t now, const char* why, NextStep (Reflector::*then)(const char*),
                std::int64_t at_least = 0);
  NextStep again(std::int64_t now, const char* why, std::int64_t at_least = 0);
  ReflectorStep absent();
  ReflectorStep expired(std::int64_t now, bool too_large);
  NextStep give_up_initial(std::int64_t now, const WireFailure& failure);

  const ReflectorOptions options_;
  Random random_;
  Backoff backoff_;
  Phase phase_ = Phase::kIdle;
  NextStep (Reflector::*after_wait_)(const char*) = nullptr;
  const char* waits_for_ = "";  // why it waits, told by what is begun then
  bool watch_list_known_bad_ = false;
  bool from_store_ = false;  // the last version is of no use: ask with ""
  bool whole_list_ = false;  // a continue token expired: without a limit
  bool recording_ = true;
  bool absent_ = false;
  int failures_ = 0;
  std::int64_t opened_ = -1;       // when the watch was answered; -1: not yet
  std::int64_t heard_ = -1;        // when it last said something
  std::uint64_t heard_count_ = 0;  // events of this watch
  std::string version_;
  std::string opened_version_;  // version_ when this watch began
};

// "3" < "12"; numbers of any length without leading zeros. False for anything else.
bool older_version(std::string_view a, std::string_view b);

}  // namespace berth::kube
