#include "edge/kube/informer.h"

#include <gtest/gtest.h>

#include "edge/kube/script_transport_for_test.h"
#include "text/json.h"

namespace berth::kube {
namespace {

constexpr std::int64_t kWatchSecond = 1'000'000'000;

std::string pod(std::string_view name, int version, std::string_view uid = "",
                std::string_view extra = "") {
  std::string id = uid.empty() ? "u-" + std::string(name) : std::string(uid);
  return R"({"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"d","name":")" +
         std::string(name) + R"(","uid":")" + id + R"(","resourceVersion":")" +
         std::to_string(version) + R"(","managedFields":[{"manager":"x"}]})" + std::string(extra) +
         "}";
}
std::string event(std::string_view type, const std::string& object) {
  return R"({"type":")" + std::string(type) + R"(","object":)" + object + "}\n";
}
std::string bookmark(int version, bool initial_end = false) {
  return event(
      "BOOKMARK",
      R"({"kind":"Pod","metadata":{"resourceVersion":")" + std::to_string(version) + R"(")" +
          (initial_end ? R"(,"annotations":{"k8s.io/initial-events-end":"true"})" : "") + "}}");
}
std::string list_of(int version, const std::vector<std::string>& items, std::string next = "") {
  std::string out = R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":")" +
                    std::to_string(version) + R"(","continue":")" + next + R"("},"items":[)";
  for (std::size_t i = 0; i < items.size(); ++i) out += (i ? "," : "") + items[i];
  return out + "]}";
}
std::string status_of(int code, std::string_view reason) {
  return R"({"kind":"Status","code":)" + std::to_string(code) + R"(,"reason":")" +
         std::string(reason) + R"("})";
}

struct InformerWorld {
  explicit InformerWorld(InformerOptions options = {.resource = resources::pods()})
      : informer(std::make_unique<Informer>(client, Random(3), std::move(options), &metrics)) {
    informer->add_handler([this](const ObjectPtr& before, const ObjectPtr& after) {
      log += describe(before, after);
    });
    informer->on_synced([this] { log += "synced "; });
  }
  static std::string describe(const ObjectPtr& before, const ObjectPtr& after) {
    const Object& o = after ? *after : *before;
    std::string sign = !before ? "+" : after ? "~" : "-";
    return sign + o.key.name + "@" + o.version + " ";
  }
  std::string told() { return std::exchange(log, {}); }
  std::string names() const {
    std::string out;
    for (const ObjectPtr& o : informer->all()) out += o->key.name + "@" + o->version + " ";
    return out;
  }
  std::size_t count() const { return wire.asked.size(); }
  void run() { loop.run_ready(); }
  // Synced by WatchList with pods a@5 and b@6, at version 10; the stream is number 0.
  void sync() {
    informer->start();
    wire.head(0);
    wire.data(0, event("ADDED", pod("b", 6)) + event("ADDED", pod("a", 5)) + bookmark(10, true));
    run();
    const bool as_they_come = informer->options().keep == Keep::kKeys;
    EXPECT_EQ(told(), as_they_come ? "+b@6 +a@5 synced " : "+a@5 +b@6 synced ");
  }
  void absorb(const std::string& json) {
    auto parsed = text::parse_json(json);
    ASSERT_TRUE(parsed.ok());
    informer->absorb(std::move(parsed).value());
  }

  MetricsRegistry metrics;
  FakeClock clock{1'000 * kWatchSecond};
  SteppedLoop loop{clock};
  ScriptTransport wire{loop};
  Client client{wire, loop, Random(1), {}, &metrics};
  std::string log;
  std::unique_ptr<Informer> informer;
};

TEST(Informer, first_sync_by_watch_list_goes_on_with_the_same_stream) {
  InformerWorld w;
  w.informer->start();
  EXPECT_EQ(w.wire.asked[0].query("watch"), "1");
  EXPECT_EQ(w.wire.asked[0].query("sendInitialEvents"), "true");
  EXPECT_EQ(w.wire.asked[0].query("resourceVersionMatch"), "NotOlderThan");
  EXPECT_EQ(w.wire.asked[0].query("allowWatchBookmarks"), "true");
  EXPECT_EQ(w.wire.asked[0].query("resourceVersion"), "-");
  int timeout = std::stoi(w.wire.asked[0].query("timeoutSeconds"));
  EXPECT_GE(timeout, 300);
  EXPECT_LE(timeout, 600);
  EXPECT_EQ(w.wire.asked[0].stream.idle_ns, (timeout + 5) * kWatchSecond);
  w.wire.head(0);
  std::string first = event("ADDED", pod("b", 6)) + event("ADDED", pod("a", 5)) +
                      event("ADDED", pod("c", 2)) + event("DELETED", pod("c", 7)) + bookmark(10);
  for (char c : first) w.wire.data(0, std::string(1, c));  // cut anywhere
  w.run();
  EXPECT_FALSE(w.informer->synced());
  EXPECT_EQ(w.told() + w.names(), "") << "nothing before the copy is whole";
  w.wire.data(0, bookmark(11, true) + event("MODIFIED", pod("a", 12)));
  w.run();
  EXPECT_TRUE(w.informer->synced());
  EXPECT_EQ(w.told(), "+a@5 +b@6 synced ~a@12 ");
  EXPECT_EQ(w.informer->version(), "12");
  EXPECT_EQ(w.count(), 1u);
  EXPECT_EQ(w.informer->find({"d", "a"})->root().find("metadata")->find("managedFields"), nullptr);
  EXPECT_EQ(w.informer->last_heard_ticks(), 1);
}

TEST(Informer, falls_back_to_list_then_watches_from_its_version) {
  for (int status : {400, 422, 403}) {
    InformerWorld w;
    w.informer->start();
    w.wire.head(0, status);
    w.wire.data(0, status_of(status, "Invalid"));
    w.wire.end(0);
    w.loop.run_for(2 * kWatchSecond);
    ASSERT_EQ(w.count(), 2u) << status;
    EXPECT_FALSE(w.wire.asked[1].is_stream);
    EXPECT_EQ(w.wire.asked[1].query("resourceVersion"), "0");
    EXPECT_EQ(w.wire.asked[1].query("limit"), "500");
    w.wire.answer(1, 200, list_of(20, {pod("a", 5)}, "more"));
    w.run();
    EXPECT_EQ(w.wire.asked[2].query("continue"), "more");
    EXPECT_EQ(w.wire.asked[2].query("resourceVersion"), "-");
    EXPECT_EQ(w.told(), "");
    w.wire.answer(2, 200, list_of(20, {pod("b", 6)}));
    w.run();
    EXPECT_EQ(w.told(), "+a@5 +b@6 synced ");
    EXPECT_EQ(w.wire.asked[3].query("resourceVersion"), "20");
    EXPECT_EQ(w.wire.asked[3].query("sendInitialEvents"), "-");
  }
}

TEST(Informer, list_items_get_their_kind_and_lose_what_is_dropped) {
  InformerWorld w({.resource = resources::pods(),
                   .drop = {"metadata.managedFields", "status"},
                   .watch_list = false});
  w.informer->start();
  w.wire.answer(0, 200,
                list_of(20, {R"({"metadata":{"name":"a","managedFields":[]},"spec":{"x":1},)"
                             R"("status":{"phase":"Running"}})"}));
  w.run();
  EXPECT_EQ(text::to_json(w.informer->find({"", "a"})->root()),
            R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"x":1}})");
}

// What ends a watch, and what comes next: after how long at least (0: at once), and what is asked.
TEST(Informer, what_follows_the_end_of_a_watch) {
  struct Case {
    const char* what;
    std::string data;  // of the open stream, 2 s after its head
    bool end, broken;
    bool waits;
    bool initial;  // next is a new first sync, not a watch
  };
  const Case cases[] = {
      {"EOF", "", true, false, false, false},
      {"connection broke", "", false, true, false, false},
      {"half a line", R"({"type":"MODI)", false, true, false, false},
      {"410", event("ERROR", status_of(410, "Expired")), false, false, false, true},
      {"429", event("ERROR", status_of(429, "TooManyRequests")), false, false, true, false},
      {"500", event("ERROR", status_of(500, "InternalError")), false, false, true, false},
      {"no JSON", "{nonsense}\n", false, false, true, true},
      {"unknown type", event("STRANGE", pod("a", 12)), false, false, true, true},
      {"no name", event("ADDED", R"({"metadata":{"resourceVersion":"12"}})"), false, false, true,
       true},
  };
  for (const Case& c : cases) {
    InformerWorld w;
    w.sync();
    w.loop.run_for(2 * kWatchSecond);
    w.wire.data(0, bookmark(11) + c.data);
    if (c.end) w.wire.end(0);
    if (c.broken) w.wire.fail(0, {"reset", false, true});
    w.run();
    EXPECT_EQ(w.count(), c.waits ? 1u : 2u) << c.what;
    EXPECT_FALSE(w.wire.asked[0].open) << c.what;
    w.loop.run_for(2 * kWatchSecond);
    ASSERT_EQ(w.count(), 2u) << c.what;
    const auto& next = w.wire.asked[1];
    const bool initial = !next.is_stream || next.query("sendInitialEvents") == "true";
    EXPECT_EQ(initial, c.initial) << c.what;
    EXPECT_EQ(next.query("resourceVersion"), "11") << c.what;
    EXPECT_TRUE(w.informer->synced()) << c.what;
    EXPECT_EQ(w.told(), "") << c.what;
  }
}

TEST(Informer, watch_refused_or_busy_is_watched_again_not_listed) {
  InformerWorld w;
  w.sync();
  w.loop.run_for(2 * kWatchSecond);
  w.wire.end(0);
  w.run();
  ASSERT_EQ(w.count(), 2u);
  w.wire.fail(1, {"connection refused", true, false});
  w.run();
  EXPECT_EQ(w.count(), 2u);
  w.loop.run_for(2 * kWatchSecond);
  ASSERT_EQ(w.count(), 3u);
  EXPECT_EQ(w.wire.asked[2].query("sendInitialEvents"), "-");
  w.wire.head(2, 429);
  w.wire.end(2);
  w.loop.run_for(4 * kWatchSecond);
  ASSERT_EQ(w.count(), 4u);
  EXPECT_TRUE(w.wire.asked[3].is_stream);
  EXPECT_EQ(w.wire.asked[3].query("sendInitialEvents"), "-");
  EXPECT_EQ(w.wire.asked[3].query("resourceVersion"), "10");
}

TEST(Informer, very_short_watches_wait_longer_and_longer_and_then_list) {
  InformerWorld w;
  w.sync();
  w.loop.run_for(2 * kWatchSecond);
  w.wire.end(0);
  w.run();
  std::vector<std::int64_t> waits;
  for (std::size_t i = 1; i <= 5; ++i) {
    ASSERT_EQ(w.count(), i + 1);
    EXPECT_EQ(w.wire.asked[i].query("sendInitialEvents"), "-") << i;
    w.wire.head(i);
    w.wire.end(i);
    std::int64_t from = w.clock.ticks_ns();
    ASSERT_TRUE(w.loop.run_until([&] { return w.count() > i + 1; }, 100 * kWatchSecond));
    waits.push_back(w.clock.ticks_ns() - from);
  }
  for (std::size_t i = 0; i < waits.size(); ++i) {  // 0.8 s doubled, each in [d, 2d)
    EXPECT_GE(waits[i], 800'000'000LL << i);
    EXPECT_LT(waits[i], 1'600'000'000LL << i);
  }
  EXPECT_EQ(w.wire.last().query("sendInitialEvents"), "true");
}

TEST(Informer, differences_after_a_gap_are_told_as_changes) {
  InformerWorld w({.resource = resources::pods(), .watch_list = false});
  w.informer->start();
  w.wire.answer(0, 200, list_of(10, {pod("a", 5), pod("b", 6), pod("c", 7), pod("d", 8)}));
  w.run();
  EXPECT_EQ(w.told(), "+a@5 +b@6 +c@7 +d@8 synced ");
  w.wire.head(1);
  w.loop.run_for(2 * kWatchSecond);
  w.wire.data(1, event("ERROR", status_of(410, "Gone")));
  w.run();
  ASSERT_EQ(w.count(), 3u);
  EXPECT_EQ(w.wire.asked[2].query("resourceVersion"), "10");
  EXPECT_EQ(w.wire.asked[2].query("limit"), "-");
  w.wire.answer(2, 410, status_of(410, "Expired"));
  w.run();
  ASSERT_EQ(w.count(), 4u);
  EXPECT_EQ(w.wire.asked[3].query("resourceVersion"), "-");
  EXPECT_EQ(w.wire.asked[3].query("limit"), "500");
  w.wire.answer(3, 200, list_of(30, {pod("b", 6)}, "t"));
  w.run();
  w.wire.answer(4, 410, status_of(410, "Expired"));  // the token is too old
  w.run();
  ASSERT_EQ(w.count(), 6u);
  EXPECT_EQ(w.wire.asked[5].query("limit"), "-");
  EXPECT_EQ(w.told(), "");
  w.wire.answer(5, 200,
                list_of(31, {pod("b", 6), pod("c", 20), pod("d", 21, "u-new"), pod("e", 22)}));
  w.run();
  EXPECT_EQ(w.told(), "-a@5 ~c@20 -d@8 +d@21 +e@22 synced ");
  EXPECT_EQ(w.names(), "b@6 c@20 d@21 e@22 ");
}

TEST(Informer, a_version_from_the_future_is_asked_for_from_the_store) {
  InformerWorld w;
  w.sync();
  w.loop.run_for(2 * kWatchSecond);
  w.wire.data(0, event("ERROR", status_of(410, "Expired")));
  w.run();
  w.wire.head(1, 504);
  w.wire.data(1, R"({"kind":"Status","code":504,"reason":"Timeout","details":{"causes":)"
                 R"([{"reason":"ResourceVersionTooLarge"}]}})");
  w.wire.end(1);
  w.run();
  ASSERT_EQ(w.count(), 3u);
  EXPECT_EQ(w.wire.asked[2].query("sendInitialEvents"), "true");
  EXPECT_EQ(w.wire.asked[2].query("resourceVersion"), "-");
  w.wire.head(2);
  w.wire.data(2, event("ADDED", pod("a", 2)) + bookmark(3, true));  // a store put back from a copy
  w.run();
  EXPECT_EQ(w.told(), "-b@6 ~a@2 synced ");
}

TEST(Informer, a_watch_list_that_never_ends_its_first_part_gives_way_to_a_list) {
  InformerWorld w;
  w.informer->start();
  w.wire.head(0);
  w.wire.data(0, event("ADDED", pod("a", 5)));
  w.loop.run_for(29 * kWatchSecond);
  w.wire.data(0, event("ADDED", pod("b", 5)));
  w.loop.run_for(29 * kWatchSecond);
  EXPECT_EQ(w.count(), 1u);
  w.loop.run_for(2 * kWatchSecond);
  ASSERT_EQ(w.count(), 2u);
  EXPECT_FALSE(w.wire.asked[1].is_stream);
  EXPECT_TRUE(w.wire.asked[0].cancelled);
  w.wire.answer(1, 200, list_of(9, {pod("b", 5)}));
  w.run();
  EXPECT_EQ(w.told(), "+b@5 synced ");
}

TEST(Informer, a_collection_that_does_not_exist_is_empty_and_looked_for_again) {
  InformerWorld w;
  w.informer->start();
  w.wire.head(0, 404);
  w.wire.data(0, "404 page not found");
  w.wire.end(0);
  w.run();
  EXPECT_TRUE(w.informer->synced() && w.informer->absent());
  EXPECT_EQ(w.told(), "synced ");
  w.loop.run_for(30 * kWatchSecond);
  ASSERT_EQ(w.count(), 2u);
  w.wire.head(1, 404);
  w.wire.end(1);
  w.loop.run_for(31 * kWatchSecond);
  EXPECT_EQ(w.told(), "") << "told once";
  ASSERT_EQ(w.count(), 3u);
  w.wire.head(2);
  w.wire.data(2, event("ADDED", pod("a", 5)) + bookmark(6, true));
  w.run();
  EXPECT_FALSE(w.informer->absent());
  EXPECT_EQ(w.told(), "+a@5 synced ");
  w.loop.run_for(2 * kWatchSecond);
  w.wire.end(2);
  w.run();
  w.wire.head(3, 404);  // the definition was deleted
  w.wire.end(3);
  w.run();
  EXPECT_TRUE(w.informer->absent());
  EXPECT_EQ(w.told(), "-a@5 synced ");
}

TEST(Informer, own_writes_are_seen_at_once_and_not_taken_back) {
  InformerWorld w;
  w.absorb(pod("early", 11));
  w.absorb(pod("past", 9));
  w.informer->start();
  w.wire.head(0);
  w.wire.data(0, event("ADDED", pod("a", 5)) + bookmark(10, true));
  w.run();
  EXPECT_EQ(w.told(), "+a@5 +early@11 synced ") << "past is gone by version 10";
  w.absorb(pod("a", 20));
  EXPECT_EQ(w.told(), "~a@20 ");
  w.absorb(pod("n", 21));
  w.absorb(pod("n", 21));
  w.absorb(status_of(200, ""));
  EXPECT_EQ(w.told(), "+n@21 ");
  w.wire.data(0, event("MODIFIED", pod("a", 15)) + event("ADDED", pod("early", 11)) +
                     event("MODIFIED", pod("a", 20)) + event("ADDED", pod("n", 21)) +
                     event("MODIFIED", pod("a", 22)));
  w.run();
  EXPECT_EQ(w.told(), "~a@22 ");
  // Removed by us: older events of it do not bring it back; its successor comes.
  w.informer->absorb_removed({"d", "a"}, "u-other");
  EXPECT_EQ(w.told(), "");
  w.informer->absorb_removed({"d", "a"}, "u-a");
  EXPECT_EQ(w.told(), "-a@22 ");
  w.wire.data(0, event("MODIFIED", pod("a", 23)) + event("DELETED", pod("a", 24)) +
                     event("ADDED", pod("a", 25, "u-a2")));
  w.run();
  EXPECT_EQ(w.told(), "+a@25 ");
  // The next object of a name, written before the end of the last one is heard.
  w.absorb(pod("n", 31, "u-n2"));
  EXPECT_EQ(w.told(), "-n@21 +n@31 ");
  w.wire.data(0, event("DELETED", pod("n", 30)) + event("ADDED", pod("n", 31, "u-n2")));
  w.run();
  EXPECT_EQ(w.told(), "");
}

TEST(Informer, own_writes_survive_an_older_list) {
  InformerWorld w({.resource = resources::pods(), .watch_list = false});
  w.informer->start();
  w.wire.answer(0, 200, list_of(10, {pod("a", 5), pod("b", 6), pod("c", 7)}));
  w.run();
  w.told();
  w.absorb(pod("a", 20));
  w.absorb(pod("new", 21));
  w.informer->absorb_removed({"d", "c"}, "u-c");
  EXPECT_EQ(w.told(), "~a@20 +new@21 -c@7 ");
  w.wire.head(1);
  w.loop.run_for(2 * kWatchSecond);
  w.wire.data(1, event("ERROR", status_of(410, "Expired")));
  w.run();
  w.wire.answer(2, 200, list_of(15, {pod("a", 12), pod("c", 7)}));
  w.run();
  EXPECT_EQ(w.told(), "-b@6 synced ");
  EXPECT_EQ(w.names(), "a@20 new@21 ");
  w.wire.head(3);
  w.wire.data(3, event("DELETED", pod("c", 19)) + event("MODIFIED", pod("a", 20)) +
                     event("ADDED", pod("new", 21)) + event("DELETED", pod("new", 22)));
  w.run();
  EXPECT_EQ(w.told(), "-new@21 ");
}

TEST(Informer, keys_only_hands_the_document_over_and_keeps_none) {
  InformerWorld w({.resource = resources::pods(), .keep = Keep::kKeys});
  std::string seen;
  w.informer->add_handler([&](const ObjectPtr& before, const ObjectPtr& after) {
    const ObjectPtr& o = after ? after : before;
    seen += o->root().is_null() ? "none " : "whole ";
    EXPECT_TRUE(!before || !after || before->root().is_null());
  });
  w.sync();
  w.wire.data(0, event("MODIFIED", pod("a", 11)) + event("DELETED", pod("b", 12)));
  w.run();
  EXPECT_EQ(seen, "whole whole whole whole ");
  EXPECT_TRUE(w.informer->find({"d", "a"})->root().is_null());
  EXPECT_EQ(w.informer->find({"d", "a"})->uid, "u-a");
}

const InformerOptions kKeysOnly = {.resource = resources::pods(), .keep = Keep::kKeys};

TEST(Informer, keys_only_tells_the_first_list_as_it_comes) {
  InformerWorld w(kKeysOnly);
  w.informer->start();
  w.wire.head(0);
  w.wire.data(0, event("ADDED", pod("b", 6)) + event("ADDED", pod("a", 5)));
  w.run();
  EXPECT_EQ(w.told(), "+b@6 +a@5 ");
  EXPECT_FALSE(w.informer->synced());
  w.wire.data(0, event("MODIFIED", pod("a", 7)) + event("ADDED", pod("c", 3)) +
                     event("DELETED", pod("b", 8)) + event("DELETED", pod("c", 9)) +
                     event("ADDED", pod("c", 10, "u-other")));
  w.run();
  EXPECT_EQ(w.told(), "~a@7 +c@3 -c@3 +c@10 ");
  w.wire.data(0, bookmark(11, true) + event("MODIFIED", pod("a", 12)));
  w.run();
  EXPECT_EQ(w.told(), "-b@6 synced ~a@12 ");
  EXPECT_EQ(w.names(), "a@12 c@10 ");
}

// The first attempt told of a@5, b@6 and c@20; the server that answers next lags behind.
TEST(Informer, keys_only_takes_back_what_a_broken_list_told) {
  struct Case {
    const char* what;
    std::vector<std::string> items;
    int version;
    const char* told;
  };
  const Case cases[] = {
      {"all the same", {pod("a", 5), pod("b", 6), pod("c", 20)}, 21, "synced "},
      {"gone and changed", {pod("a", 9)}, 30, "~a@9 -b@6 -c@20 synced "},
      {"another of that name",
       {pod("a", 5), pod("b", 22, "u-2"), pod("c", 20)},
       30,
       "-b@6 +b@22 synced "},
      {"it does not know c yet", {pod("a", 5), pod("b", 6)}, 15, "synced "},
      {"an earlier c", {pod("a", 5), pod("b", 6), pod("c", 8)}, 15, "synced "},
      {"a c before that c", {pod("a", 5), pod("b", 6), pod("c", 8, "u-0")}, 15, "synced "},
  };
  for (const Case& c : cases) {
    InformerWorld w(kKeysOnly);
    w.informer->start();
    w.wire.head(0);
    w.wire.data(0, event("ADDED", pod("b", 6)) + event("ADDED", pod("a", 5)) +
                       event("ADDED", pod("c", 20)));
    w.run();
    EXPECT_EQ(w.told(), "+b@6 +a@5 +c@20 ") << c.what;
    w.wire.fail(0, {"reset", false, true});
    w.loop.run_for(2 * kWatchSecond);
    ASSERT_EQ(w.count(), 2u) << c.what;
    w.wire.head(1);
    for (const std::string& item : c.items) w.wire.data(1, event("ADDED", item));
    w.run();
    EXPECT_FALSE(w.informer->synced()) << c.what;
    w.wire.data(1, bookmark(c.version, true));
    w.run();
    EXPECT_EQ(w.told(), c.told) << c.what;
    if (c.version != 15) continue;
    EXPECT_EQ(w.names(), "a@5 b@6 c@20 ") << c.what;
    w.wire.data(1, event("ADDED", pod("c", 20)) + event("DELETED", pod("c", 21)));
    w.run();
    EXPECT_EQ(w.told(), "-c@21 ") << c.what << ": the watch has the last word";
  }
}

TEST(Informer, keys_only_tells_pages_as_they_come_and_begins_again_when_their_token_expires) {
  InformerOptions options = kKeysOnly;
  options.watch_list = false;
  InformerWorld w(options);
  w.informer->start();
  w.wire.answer(0, 200, list_of(20, {pod("a", 5), pod("b", 6)}, "more"));
  w.run();
  EXPECT_EQ(w.told(), "+a@5 +b@6 ");
  w.wire.answer(1, 410, status_of(410, "Expired"));
  w.run();
  EXPECT_EQ(w.wire.asked[2].query("resourceVersion"), "-");
  w.wire.answer(2, 200, list_of(30, {pod("a", 5), pod("b", 25)}, "more"));
  w.run();
  EXPECT_EQ(w.told(), "~b@25 ");
  w.wire.answer(3, 410, status_of(410, "Expired"));
  w.run();
  EXPECT_EQ(w.wire.asked[4].query("limit"), "-");
  w.wire.answer(4, 200, list_of(40, {pod("b", 25), pod("c", 35)}));
  w.run();
  EXPECT_EQ(w.told(), "+c@35 -a@5 synced ");
  EXPECT_EQ(w.wire.asked[5].query("resourceVersion"), "40");
  EXPECT_EQ(w.informer->find({"d", "c"})->root().is_null(), true);
}

TEST(Informer, keys_only_is_empty_when_the_collection_goes_before_its_list_is_complete) {
  InformerOptions options = kKeysOnly;
  options.watch_list = false;
  InformerWorld w(options);
  w.informer->start();
  w.wire.answer(0, 200, list_of(20, {pod("a", 5)}, "more"));
  w.run();
  w.wire.answer(1, 404, status_of(404, "NotFound"));
  w.run();
  EXPECT_EQ(w.told(), "+a@5 -a@5 synced ");
  EXPECT_TRUE(w.informer->absent());
}

TEST(Informer, keys_only_sees_writes_of_our_own_during_the_first_list) {
  InformerWorld w(kKeysOnly);
  w.informer->start();
  w.wire.head(0);
  w.wire.data(0, event("ADDED", pod("a", 5)) + event("ADDED", pod("b", 6)));
  w.run();
  w.absorb(pod("a", 12));
  w.informer->absorb_removed({"d", "b"}, "u-b");
  EXPECT_EQ(w.told(), "+a@5 +b@6 -b@6 ");
  w.wire.data(0, event("ADDED", pod("b", 6)) + bookmark(10, true) + event("DELETED", pod("b", 11)) +
                     event("MODIFIED", pod("a", 12)));
  w.run();
  EXPECT_EQ(w.told(), "~a@12 synced ");
  EXPECT_EQ(w.names(), "a@12 ");
}

TEST(Informer, keys_only_may_be_destroyed_in_the_middle_of_a_page) {
  InformerOptions options = kKeysOnly;
  options.watch_list = false;
  InformerWorld w(options);
  int calls = 0;
  w.informer->add_handler([&](const ObjectPtr&, const ObjectPtr&) {
    ++calls;
    w.informer.reset();
  });
  w.informer->start();
  std::vector<std::string> items;
  for (int i = 0; i < 200; ++i) items.push_back(pod("p" + std::to_string(i), 5));
  w.wire.answer(0, 200, list_of(20, items));
  w.run();
  EXPECT_EQ(calls, 1);
}

TEST(Informer, indices_follow_every_change) {
  InformerWorld w;
  int by_node = w.informer->add_index([](const Object& o) -> std::vector<std::string> {
    const text::Value* spec = o.root().find("spec");
    if (!spec) return {};
    return {std::string(spec->find("nodeName")->string()), "any"};
  });
  auto on = [](const char* node) { return R"(,"spec":{"nodeName":")" + std::string(node) + "\"}"; };
  auto found = [&](const char* name) {
    std::string out;
    for (const ObjectPtr& o : w.informer->by_index(by_node, name)) out += o->key.name;
    return out;
  };
  w.sync();
  w.wire.data(0, event("MODIFIED", pod("b", 11, "", on("n1"))) +
                     event("MODIFIED", pod("a", 12, "", on("n1"))));
  w.run();
  EXPECT_EQ(found("n1") + "|" + found("any") + "|" + found("n2"), "ab|ab|");
  w.wire.data(0, event("MODIFIED", pod("a", 13, "", on("n2"))) + event("DELETED", pod("b", 14)));
  w.run();
  EXPECT_EQ(found("n1") + "|" + found("any") + "|" + found("n2"), "|a|a");
  EXPECT_TRUE(w.informer->by_index(7, "n1").empty());
}

TEST(Informer, late_handlers_and_changes_from_handlers_keep_the_order) {
  InformerWorld w;
  std::string second;
  bool done = false;
  w.informer->add_handler([&](const ObjectPtr& before, const ObjectPtr& after) {
    if (done || !after || after->key.name != "a") return;
    done = true;
    w.absorb(pod("a", 12));
    w.informer->add_handler(
        [&](const ObjectPtr& b, const ObjectPtr& a) { second += InformerWorld::describe(b, a); });
    (void)before;
  });
  w.informer->start();
  w.wire.head(0);
  w.wire.data(0, event("ADDED", pod("b", 6)) + event("ADDED", pod("a", 5)) + bookmark(10, true));
  w.run();
  EXPECT_EQ(w.told(), "+a@5 +b@6 synced ~a@12 ");
  EXPECT_EQ(second, "+a@12 +b@6 ");
  bool again = false;
  w.informer->on_synced([&] { again = true; });
  EXPECT_TRUE(again);
}

TEST(Informer, may_be_destroyed_by_a_handler) {
  InformerWorld w;
  int calls = 0;
  w.informer->add_handler([&](const ObjectPtr&, const ObjectPtr&) {
    ++calls;
    w.informer.reset();
  });
  w.informer->start();
  w.wire.head(0);
  w.wire.data(0, event("ADDED", pod("b", 6)) + event("ADDED", pod("a", 5)) + bookmark(10, true) +
                     event("ADDED", pod("c", 11)));
  w.run();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(w.wire.asked[0].cancelled);
  w.loop.run_for(1'000 * kWatchSecond);
  EXPECT_TRUE(w.loop.idle());
}

TEST(Informer, an_own_write_outside_of_the_selection_is_left_to_the_server) {
  InformerWorld w({.resource = resources::pods(), .ns = "d", .field_selector = "spec.nodeName=n"});
  w.sync();
  EXPECT_EQ(w.wire.asked[0].query("fieldSelector"), "spec.nodeName=n");
  EXPECT_EQ(w.wire.asked[0].path(), "/api/v1/namespaces/d/pods");
  w.absorb(pod("other", 11));
  w.absorb(pod("a", 12));
  EXPECT_EQ(w.told(), "~a@12 ");
}

TEST(Informer, metrics_say_what_it_does) {
  InformerWorld w;
  w.sync();
  w.loop.run_for(2 * kWatchSecond);
  w.wire.data(0, event("ADDED", R"({"metadata":{"name":"x","resourceVersion":"12",)"
                                R"("creationTimestamp":"1970-01-01T00:16:40Z"}})"));
  w.wire.end(0);
  w.run();
  std::string text = w.metrics.render(MetricFormat::kPrometheusText);
  for (const char* line :
       {R"(berth_kube_objects{resource="pods"} 3)",
        R"(berth_kube_watch_events_total{resource="pods"} 4)",
        R"(berth_kube_lists_total{resource="pods"} 1)",
        R"(berth_kube_last_heard_seconds{resource="pods"} 1002)",
        R"(berth_kube_watch_lag_seconds_bucket{resource="pods",le="2"} 1)",
        R"(berth_kube_watch_restarts_total{resource="pods",reason="ended"} 1)"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

}  // namespace
}  // namespace berth::kube
