#include "edge/kube/reflector.h"

#include <gtest/gtest.h>

#include "edge/kube/watch_line.h"
#include "text/json.h"

namespace berth::kube {
namespace {

constexpr std::int64_t kTalkSecond = 1'000'000'000;

// Speaks to the machine and writes down what it wants, one word for each thing.
struct Talk {
  explicit Talk(ReflectorOptions options = {}) : machine(options, Random(7)) {}

  std::string show(const ReflectorStep& step) {
    std::string out;
    const CopyChange& c = step.change;
    if (c.begin) out += "begin ";
    if (c.collect) out += "collect ";
    if (c.replace) out += "replace ";
    if (c.apply) out += "apply ";
    if (c.absent) out += "absent ";
    const NextStep& n = step.next;
    const std::string from = n.version.empty() ? "\"\"" : n.version;
    if (n.kind == NextStep::kList) {
      out += "list " + (n.next.empty() ? from : "more:" + n.next) + " " + std::to_string(n.limit);
    } else if (n.kind == NextStep::kWatch) {
      out += std::string(n.send_initial ? "watchlist " : "watch ") + from;
    } else if (n.kind == NextStep::kWait) {
      out += std::string("wait ") + n.why;
      waited = n.wait_ns;
    } else {
      out += "on";
    }
    return out;
  }
  std::string event(std::string_view type, int version, std::string_view more = "") {
    auto object = text::parse_json(R"({"metadata":{"name":"x","resourceVersion":")" +
                                   std::to_string(version) + "\"" + std::string(more) + "}}");
    return show(machine.event(now, watch_type_of(type), object->root(), {}));
  }
  std::string error(int status) {
    return show(machine.event(now, WatchType::kError, text::Value(), {.status = status}));
  }
  std::string end_mark(int version) {
    return event("BOOKMARK", version, R"(,"annotations":{"k8s.io/initial-events-end":"true"})");
  }
  std::string waits_then() {
    now += waited;
    return show(machine.timer(now));
  }
  void to_watching(int version) {  // by WatchList, and some time passes
    EXPECT_EQ(show(machine.start()), "begin watchlist \"\"");
    machine.watch_opened(now);
    EXPECT_EQ(end_mark(version), "replace on");
    now += 5 * kTalkSecond;
  }

  Reflector machine;
  std::int64_t now = 0;
  std::int64_t waited = 0;
};

TEST(Reflector, watch_list_then_the_same_stream) {
  Talk t;
  EXPECT_EQ(t.show(t.machine.start()), "begin watchlist \"\"");
  t.machine.watch_opened(0);
  EXPECT_EQ(t.event("ADDED", 9), "collect on");
  EXPECT_EQ(t.event("ADDED", 4), "collect on");
  EXPECT_EQ(t.event("BOOKMARK", 5), "on");
  EXPECT_EQ(t.machine.version(), "") << "initial events come in no order";
  EXPECT_EQ(t.end_mark(10), "replace on");
  EXPECT_EQ(t.event("MODIFIED", 11), "apply on");
  EXPECT_EQ(t.event("BOOKMARK", 15), "on");
  EXPECT_EQ(t.machine.version(), "15");
  t.now += 5 * kTalkSecond;
  EXPECT_EQ(t.show(t.machine.watch_ended(t.now, false)), "watch 15");
}

TEST(Reflector, list_and_watch) {
  Talk t({.watch_list = false});
  EXPECT_EQ(t.show(t.machine.start()), "begin list 0 500");
  EXPECT_EQ(t.show(t.machine.listed(0, "7", "tok")), "collect list more:tok 500");
  EXPECT_EQ(t.show(t.machine.listed(0, "7", "")), "collect replace watch 7");
  t.machine.watch_opened(0);
  EXPECT_EQ(t.event("ADDED", 8), "apply on");
  EXPECT_EQ(t.event("DELETED", 9), "apply on");
  EXPECT_EQ(t.error(410), "begin list 9 0") << "a later list has no limit";
}

TEST(Reflector, a_watch_from_zero_records_no_version_before_its_first_real_event) {
  Talk t({.watch_list = false});
  t.machine.start();
  EXPECT_EQ(t.show(t.machine.listed(0, "0", "")), "collect replace watch 0");
  t.machine.watch_opened(0);
  EXPECT_EQ(t.event("ADDED", 8), "apply on");
  EXPECT_EQ(t.machine.version(), "0");
  EXPECT_EQ(t.event("MODIFIED", 6), "apply on");
  EXPECT_EQ(t.machine.version(), "6");
}

TEST(Reflector, what_a_failed_watch_leads_to) {
  struct Case {
    WireFailure failure;
    const char *want, *then;
  };
  const Case cases[] = {
      {{.status = 429}, "wait busy", "watch 10"},
      {{.refused = true}, "wait refused", "watch 10"},
      {{.status = 500}, "begin wait watch_failed", "watch 10"},
      {{.status = 503}, "begin wait watch_failed", "watch 10"},
      {{}, "begin wait watch_failed", "watch 10"},
      {{.status = 403}, "begin wait watch_failed", "watchlist 10"},
      {{.status = 410}, "begin wait expired", "watchlist 10"},
      {{.status = 404}, "begin absent wait absent", "watchlist \"\""},
  };
  for (const Case& c : cases) {
    Talk t;
    t.to_watching(10);
    EXPECT_EQ(t.show(t.machine.watch_ended(t.now, true)), "watch 10");
    EXPECT_EQ(t.show(t.machine.watch_failed(t.now, c.failure)), c.want);
    EXPECT_EQ(t.waits_then(), c.then) << c.want;
  }
}

TEST(Reflector, what_a_failed_first_sync_leads_to) {
  struct Case {
    WireFailure failure;
    const char *want, *then;
  };
  const Case cases[] = {
      {{.status = 422}, "begin list 0 500", ""},
      {{.status = 400}, "begin list 0 500", ""},
      {{.status = 403}, "begin wait fallback", "list 0 500"},
      {{.status = 500}, "begin wait fallback", "list 0 500"},
      {{.status = 429}, "begin wait busy", "watchlist \"\""},
      {{.refused = true}, "begin wait refused", "watchlist \"\""},
  };
  for (const Case& c : cases) {
    Talk t;
    t.machine.start();
    EXPECT_EQ(t.show(t.machine.watch_failed(0, c.failure)), c.want);
    EXPECT_EQ(*c.then ? t.waits_then() : "", c.then);
  }
  Talk busy;
  busy.machine.start();
  busy.show(busy.machine.watch_failed(0, {.status = 429, .retry_after_ns = 20 * kTalkSecond}));
  EXPECT_GE(busy.waited, 20 * kTalkSecond) << "Retry-After is kept";
}

TEST(Reflector, a_version_that_is_of_no_use_is_asked_for_from_the_store_at_once) {
  Talk t;
  t.to_watching(10);
  EXPECT_EQ(t.error(410), "begin watchlist 10");
  EXPECT_EQ(t.show(t.machine.watch_failed(t.now, {.status = 504, .too_large = true})),
            "begin watchlist \"\"");
  EXPECT_EQ(t.show(t.machine.watch_failed(t.now, {.status = 410})), "begin wait expired");
  EXPECT_EQ(t.waits_then(), "watchlist \"\"");
  t.machine.watch_opened(t.now);
  EXPECT_EQ(t.end_mark(3), "replace on");
  EXPECT_EQ(t.machine.version(), "3");
  Talk lists({.watch_list = false});
  lists.machine.start();
  lists.machine.listed(0, "7", "");
  lists.machine.watch_opened(0);
  lists.now += 5 * kTalkSecond;
  EXPECT_EQ(lists.error(410), "begin list 7 0");
  EXPECT_EQ(lists.show(lists.machine.list_failed(lists.now, {.status = 410})),
            "begin list \"\" 500");
  EXPECT_EQ(lists.show(lists.machine.list_failed(lists.now, {.status = 410})), "begin list \"\" 0");
  EXPECT_EQ(lists.show(lists.machine.list_failed(lists.now, {.status = 410})),
            "begin wait expired");
}

TEST(Reflector, what_is_begun_after_a_wait_says_why_it_waited) {
  Talk t;
  t.to_watching(10);
  t.error(410);
  EXPECT_EQ(t.show(t.machine.watch_failed(t.now, {.status = 410})), "begin watchlist \"\"");
  EXPECT_EQ(t.show(t.machine.watch_failed(t.now, {.status = 410})), "begin wait expired");
  EXPECT_STREQ(t.machine.timer(t.now + t.waited).next.why, "expired");
}

TEST(Reflector, back_off_doubles_to_half_a_minute_and_starts_again_after_two_quiet_ones) {
  Talk t({.watch_list = false});
  t.machine.start();
  std::int64_t expected = 800'000'000;
  for (int i = 0; i < 9; ++i) {
    t.show(t.machine.list_failed(t.now, {.status = 500}));
    EXPECT_GE(t.waited, expected);
    EXPECT_LT(t.waited, 2 * expected);
    expected = std::min<std::int64_t>(2 * expected, 30 * kTalkSecond);
    t.waits_then();
  }
  t.now += 121 * kTalkSecond;
  t.show(t.machine.list_failed(t.now, {.status = 500}));
  EXPECT_LT(t.waited, 2 * kTalkSecond);
}

TEST(Reflector, times_of_a_watch) {
  for (int i = 0; i < 50; ++i) {
    Reflector machine({}, Random(static_cast<std::uint64_t>(i)));
    NextStep next = machine.start().next;
    EXPECT_GE(next.timeout_s, 300);
    EXPECT_LE(next.timeout_s, 600);
    EXPECT_EQ(next.idle_ns, (next.timeout_s + 5) * kTalkSecond);
  }
}

TEST(Reflector, versions_compare_as_numbers) {
  EXPECT_TRUE(older_version("9", "10"));
  EXPECT_TRUE(older_version("18446744073709551615", "18446744073709551616"));
  EXPECT_FALSE(older_version("10", "9"));
  EXPECT_FALSE(older_version("10", "10"));
  EXPECT_FALSE(older_version("a", "b"));
  EXPECT_FALSE(older_version("", "1"));
}

TEST(WatchLine, reads_both_forms_and_refuses_the_rest) {
  auto quick = read_watch_line(R"({"type":"ADDED","object":{"a":{"b":[1]}}})"
                               "\r");
  ASSERT_TRUE(quick.ok());
  EXPECT_EQ(quick->type, WatchType::kAdded);
  EXPECT_EQ(text::to_json(quick->object.root()), R"({"a":{"b":[1]}})");
  auto slow = read_watch_line(R"({ "object": {"a":1}, "type": "DELETED" })");
  ASSERT_TRUE(slow.ok());
  EXPECT_EQ(slow->type, WatchType::kDeleted);
  EXPECT_EQ(text::to_json(slow->object.root()), R"({"a":1})");
  auto both = read_watch_line(R"({"type":"ADDED","object":{},"more":1})");
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both->type, WatchType::kAdded);
  auto escaped = read_watch_line(R"({"type":"ADD\u0045D","object":{}})");
  ASSERT_TRUE(escaped.ok());
  EXPECT_EQ(escaped->type, WatchType::kAdded) << "as every reader of JSON takes it";
  for (const char* bad : {"", "{", "[]", R"({"type":"ADDED"})", R"({"object":{}})",
                          R"({"type":"ADDED","object":3, "x":1})", R"({"type":"ADDED","object":3})",
                          "{\"type\":\"\xff\",\"object\":{}}", R"({"type":"ADDED","object":{}}})",
                          R"({"type":"ADDED","object":{},"object":{}})"}) {
    EXPECT_FALSE(read_watch_line(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace berth::kube
