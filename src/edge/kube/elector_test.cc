#include "edge/kube/elector.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "text/json.h"

namespace berth::kube {
namespace {

constexpr std::int64_t kLeaseSecond = 1'000'000'000;

// One lease, with optimistic locking, reached by one client over a line that may be bad.
struct LeaseStore {
  std::string body;  // without resourceVersion; empty: none
  int version = 0;

  text::HttpResponse serve(const text::HttpRequest& request) {
    if (request.method == "POST") {
      if (!body.empty()) return {409, {}, "{}"};
      return put(request.body);
    }
    if (body.empty()) return {404, {}, "{}"};
    if (request.method == "GET") return {200, {}, shown()};
    auto asked = text::parse_json(request.body);
    const text::Value* v = asked->root().find("metadata")->find("resourceVersion");
    if (!v || v->string() != std::to_string(version)) return {409, {}, "{}"};
    return put(request.body);
  }
  text::HttpResponse put(const std::string& json) {
    auto parsed = text::parse_json(json);
    spec = text::to_json(*parsed->root().find("spec"));
    const text::Value* labels = parsed->root().find("metadata")->find("labels");
    if (labels) kept_labels = text::to_json(*labels);
    body = json;
    ++version;
    return {200, {}, shown()};
  }
  std::string shown() const {
    return R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"berth",)"
           R"("labels":)" +
           kept_labels + R"(,"resourceVersion":")" + std::to_string(version) + R"("},"spec":)" +
           spec + "}";
  }
  LeaseRecord record() const {
    auto parsed = text::parse_json(shown());
    return read_lease(parsed->root());
  }
  std::string spec = "{}", kept_labels = R"({"theirs":"1"})";
};

class LeaseLine final : public Transport {
 public:
  LeaseLine(SteppedLoop& loop, LeaseStore& store, Random random)
      : loop_(loop), store_(store), random_(random) {}
  bool cut = false;                // nothing passes
  std::int64_t longest_delay = 0;  // each way, drawn
  std::uint64_t lost_percent = 0;  // each way
  std::vector<std::string> asked;

  Call send(text::HttpRequest request, const SendOptions& options, Answered answered) override {
    Call id = ++last_;
    EXPECT_TRUE(options.urgent);
    asked.push_back(request.method);
    open_.insert(id);
    auto answer = std::make_shared<Answered>(std::move(answered));
    loop_.after(options.timeout_ns, [this, id, answer] {
      TransportError error{"timed out", false, true};
      if (open_.erase(id) > 0) (*answer)({}, &error);
    });
    loop_.after(delay(), [this, id, request = std::move(request), answer] {
      if (cut || random_.chance(lost_percent, 100)) return;
      text::HttpResponse response = store_.serve(request);
      if (random_.chance(lost_percent, 100)) return;
      loop_.after(delay(), [this, id, response, answer] {
        if (!cut && open_.erase(id) > 0) (*answer)(response, nullptr);
      });
    });
    return id;
  }
  Call stream(text::HttpRequest, const StreamOptions&, StreamHandler) override { return 0; }
  void resume(Call) override {}
  void cancel(Call call) override { open_.erase(call); }

 private:
  std::int64_t delay() { return longest_delay == 0 ? 0 : random_.between(0, longest_delay); }
  SteppedLoop& loop_;
  LeaseStore& store_;
  Random random_;
  Call last_ = 0;
  std::set<Call> open_;
};

struct Candidate {
  Candidate(SteppedLoop& loop, LeaseStore& store, const std::string& name, std::uint64_t seed)
      : line(loop, store, Random(seed)),
        client(line, loop, Random(seed + 1)),
        elector(client, Random(seed + 2), {.identity = name},
                {[this] { log += "started "; }, [this](const std::string&) { log += "stopped "; },
                 [this](const std::string& holder) { log += "sees:" + holder + " "; }},
                &metrics) {}
  std::string log;
  MetricsRegistry metrics;
  LeaseLine line;
  Client client;
  Elector elector;
};

struct ElectorWorld {
  FakeClock clock{1'700'000'000 * kLeaseSecond + 123'456'789};
  SteppedLoop loop{clock};
  LeaseStore store;
  Candidate a{loop, store, "a", 10}, b{loop, store, "b", 20};
};

TEST(Elector, creates_the_lease_and_renews_it_from_memory) {
  ElectorWorld w;
  w.a.elector.start();
  w.loop.run_for(kLeaseSecond);
  EXPECT_TRUE(w.a.elector.leading());
  EXPECT_EQ(w.a.log, "sees:a started ");
  EXPECT_EQ(
      w.store.spec,
      R"({"holderIdentity":"a","leaseDurationSeconds":15,)"
      R"("acquireTime":"2023-11-14T22:13:20.123456Z","renewTime":"2023-11-14T22:13:20.123456Z",)"
      R"("leaseTransitions":0})");
  w.loop.run_for(20 * kLeaseSecond);
  EXPECT_EQ(w.a.line.asked.front(), "GET");
  EXPECT_EQ(w.a.line.asked[1], "POST");
  EXPECT_EQ(std::set<std::string>(w.a.line.asked.begin() + 2, w.a.line.asked.end()),
            std::set<std::string>{"PUT"});
  EXPECT_EQ(w.a.line.asked.size(), 2u + 10u) << "every two seconds";
  EXPECT_EQ(w.store.record().acquire_time, "2023-11-14T22:13:20.123456Z");
  EXPECT_EQ(w.store.record().renew_time, "2023-11-14T22:13:40.123456Z");
}

TEST(Elector, waits_for_the_other_by_its_own_clock_and_counts_the_transition) {
  ElectorWorld w;
  // Held by somebody who is gone; its clock is a year ahead, which must not matter.
  w.store.put(R"({"metadata":{"labels":{"x":"y"}},"spec":{"holderIdentity":"gone",)"
              R"("leaseDurationSeconds":15,"renewTime":"2030-01-01T00:00:00.000000Z",)"
              R"("leaseTransitions":4,"strategy":"s"}})");
  w.a.elector.start();
  w.loop.run_for(15 * kLeaseSecond);
  EXPECT_FALSE(w.a.elector.leading());
  EXPECT_EQ(w.a.elector.holder(), "gone");
  w.loop.run_for(6 * kLeaseSecond);
  EXPECT_TRUE(w.a.elector.leading());
  EXPECT_EQ(w.store.record().transitions, 5);
  EXPECT_NE(w.store.spec.find(R"("strategy":"s")"), std::string::npos) << "others' fields stay";
  EXPECT_EQ(w.store.kept_labels, R"({"x":"y"})");
}

TEST(Elector, a_leader_that_is_cut_off_stops_before_the_next_one_starts) {
  ElectorWorld w;
  w.a.elector.start();
  w.loop.run_for(kLeaseSecond);
  w.b.elector.start();
  w.loop.run_for(30 * kLeaseSecond);
  EXPECT_TRUE(w.a.elector.leading());
  EXPECT_FALSE(w.b.elector.leading());
  w.a.line.cut = true;
  std::int64_t stopped = 0, started = 0;
  for (int i = 0; i < 400 && started == 0; ++i) {
    w.loop.run_for(kLeaseSecond / 10);
    if (stopped == 0 && !w.a.elector.leading()) stopped = w.clock.ticks_ns();
    if (started == 0 && w.b.elector.leading()) started = w.clock.ticks_ns();
  }
  EXPECT_NE(stopped, 0);
  EXPECT_GT(started, stopped);
  EXPECT_TRUE(w.a.log.ends_with("stopped ")) << w.a.log;
  w.a.line.cut = false;
  w.loop.run_for(20 * kLeaseSecond);
  EXPECT_TRUE(w.b.elector.leading());
  EXPECT_FALSE(w.a.elector.leading());
  EXPECT_EQ(w.a.elector.holder(), "b");
}

TEST(Elector, leading_ends_by_the_clock_even_when_nothing_runs) {
  ElectorWorld w;
  w.a.elector.start();
  w.loop.run_for(kLeaseSecond);
  w.clock.advance(11 * kLeaseSecond);  // the thread was held up; no timer ran
  EXPECT_FALSE(w.a.elector.leading());
}

TEST(Elector, gives_the_lease_back_when_it_stops) {
  ElectorWorld w;
  w.a.elector.start();
  w.loop.run_for(kLeaseSecond);
  w.b.elector.start();
  w.loop.run_for(5 * kLeaseSecond);
  bool done = false;
  w.a.elector.stop([&] { done = true; });
  EXPECT_FALSE(w.a.elector.leading());
  EXPECT_FALSE(done);
  w.loop.run_ready();
  EXPECT_TRUE(done);
  EXPECT_EQ(w.store.record().holder, "");
  EXPECT_EQ(w.store.record().duration_s, 1);
  w.loop.run_for(5 * kLeaseSecond);
  EXPECT_TRUE(w.b.elector.leading()) << "without waiting for 15 s";
  done = false;
  w.a.elector.stop([&] { done = true; });  // not the holder: nothing to give back
  w.loop.run_ready();
  EXPECT_TRUE(done);
  EXPECT_EQ(w.store.record().holder, "b");
}

TEST(Elector, never_two_whatever_the_lines_do) {
  for (std::uint64_t seed = 1; seed <= 15; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    FakeClock clock{1'700'000'000 * kLeaseSecond};
    SteppedLoop loop(clock);
    LeaseStore store;
    std::vector<std::unique_ptr<Candidate>> all;
    for (int i = 0; i < 3; ++i) {
      all.push_back(std::make_unique<Candidate>(loop, store,
                                                std::string(1, static_cast<char>('a' + i)),
                                                seed * 100 + static_cast<std::uint64_t>(i) * 10));
      all.back()->elector.start();
    }
    int led = 0;
    for (int step = 0; step < 900; ++step) {
      if (step == 700) {
        for (auto& c : all)
          c->line.cut = false, c->line.longest_delay = 0, c->line.lost_percent = 0;
      } else if (step < 700 && random.chance(1, 20)) {
        LeaseLine& line = all[random.below(3)]->line;
        line.cut = random.chance(1, 3);
        line.longest_delay = random.between(0, 8) * kLeaseSecond;
        line.lost_percent = random.below(60);
      }
      loop.run_for(random.between(0, kLeaseSecond));
      int leading = 0;
      for (auto& c : all) leading += c->elector.leading() ? 1 : 0;
      ASSERT_LE(leading, 1);
      led += leading;
    }
    EXPECT_GT(led, 150);
    int leading = 0;
    for (auto& c : all) leading += c->elector.leading() ? 1 : 0;
    EXPECT_EQ(leading, 1) << "and in the end somebody";
  }
}

TEST(Elector, does_not_renew_for_a_program_that_does_not_move) {
  ElectorWorld w;
  bool alive = true;
  std::int64_t until = 0;
  std::string log;
  Elector elector(w.a.client, Random(1), {.identity = "c"},
                  {.started = [&] { log += "started "; },
                   .stopped = [&](const std::string&) { log += "stopped "; },
                   .renewed = [&](std::int64_t ticks) { until = ticks; },
                   .alive = [&] { return alive; }});
  elector.start();
  w.loop.run_for(9 * kLeaseSecond);
  EXPECT_TRUE(elector.leading());
  EXPECT_GT(until, w.clock.ticks_ns() + 7 * kLeaseSecond);
  alive = false;
  const int before = w.store.version;
  w.loop.run_for(11 * kLeaseSecond);
  EXPECT_EQ(w.store.version, before);
  EXPECT_FALSE(elector.leading());
  EXPECT_EQ(log, "started stopped ");
  alive = true;
  w.loop.run_for(11 * kLeaseSecond);
  EXPECT_TRUE(elector.leading());
}

TEST(LeaseJudge, judges_a_foreign_lease) {
  LeaseJudge judge;
  EXPECT_FALSE(judge.live(0));
  LeaseRecord record{"kueue", 15, 0, "", "t1"};
  judge.observe(record, 0);
  EXPECT_TRUE(judge.live(14 * kLeaseSecond));
  judge.observe(record, 14 * kLeaseSecond);
  EXPECT_FALSE(judge.live(15 * kLeaseSecond)) << "seeing the same again is no sign of life";
  record.renew_time = "t2";
  judge.observe(record, 20 * kLeaseSecond);
  EXPECT_TRUE(judge.live(34 * kLeaseSecond));
  record.holder.clear();
  judge.observe(record, 21 * kLeaseSecond);
  EXPECT_FALSE(judge.live(21 * kLeaseSecond));
}

}  // namespace
}  // namespace berth::kube
