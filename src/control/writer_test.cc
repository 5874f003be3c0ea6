#include "control/writer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "edge/kube/script_transport_for_test.h"

namespace berth::control {
namespace {

constexpr std::int64_t kTestSecond = 1'000'000'000;

struct WriterWorld {
  Write get(const std::string& name, const std::string& key = "", const std::string& ns = "a") {
    Write out = write_get(kube::resources::pods(), {ns, name});
    out.key = key;
    out.done = [this, name](const kube::Answer& answer) {
      heard.push_back(name + ' ' + std::to_string(answer.status));
    };
    return out;
  }
  void answer(std::size_t number, int status) {
    wire.answer(number, status, "{}");
    loop.run_ready();
  }
  void advance(std::int64_t ns) {
    clock.advance(ns);
    loop.run_ready();
  }
  FakeClock clock{1'700'000'000 * kTestSecond};
  SteppedLoop loop{clock};
  kube::ScriptTransport wire{loop};
  kube::Client client{wire, loop, Random(1), {.max_tries = 1}};
  MetricsRegistry metrics;
  bool leads = true;
  std::vector<std::string> heard;
  Writer writer{clock, client, [this] { return leads; }, 4, metrics};
};

TEST(Writer, OfOneKeyThereIsOneWriteAtATime) {
  WriterWorld w;
  EXPECT_TRUE(w.writer.add(w.get("p", "k")));
  EXPECT_FALSE(w.writer.add(w.get("p", "k")));
  EXPECT_TRUE(w.writer.add(w.get("q", "other")));
  EXPECT_TRUE(w.writer.add(w.get("r")));
  EXPECT_TRUE(w.writer.add(w.get("r")));
  EXPECT_EQ(w.wire.asked.size(), 4u);
  w.answer(0, 200);
  EXPECT_TRUE(w.writer.add(w.get("p", "k")));
  EXPECT_EQ(w.heard, (std::vector<std::string>{"p 200"}));
}

TEST(Writer, AfterOneThatFailedThereIsNoneForAWhile) {
  WriterWorld w;
  w.writer.add(w.get("old", "old"));
  w.writer.add(w.get("no", "no"));
  w.answer(0, 409);
  w.answer(1, 403);
  EXPECT_FALSE(w.writer.is_free("old"));
  EXPECT_FALSE(w.writer.is_under_way("old"));
  EXPECT_FALSE(w.writer.tick(w.clock.ticks_ns()));
  w.advance(kTestSecond);
  EXPECT_TRUE(w.writer.is_free("old")) << "watches have mended what we knew";
  EXPECT_TRUE(w.writer.tick(w.clock.ticks_ns())) << "so everything is compared again";
  EXPECT_FALSE(w.writer.tick(w.clock.ticks_ns()));
  EXPECT_FALSE(w.writer.add(w.get("no", "no")));
  w.advance(4 * kTestSecond);
  EXPECT_FALSE(w.writer.tick(w.clock.ticks_ns())) << "nobody expects another answer";
  EXPECT_TRUE(w.writer.add(w.get("no", "no")));
}

TEST(Writer, AClaimIsHeldOverSeveralRequests) {
  WriterWorld w;
  ASSERT_TRUE(w.writer.claim("node"));
  EXPECT_FALSE(w.writer.claim("node"));
  w.writer.add(w.get("n"));
  w.answer(0, 200);
  EXPECT_FALSE(w.writer.add(w.get("n", "node")));
  w.writer.release("node");
  EXPECT_TRUE(w.writer.add(w.get("n", "node")));
  w.writer.hold("later", w.clock.ticks_ns() + kTestSecond);
  EXPECT_FALSE(w.writer.claim("later"));
}

TEST(Writer, WithoutTheLeadNothingIsSentAndNothingHeld) {
  WriterWorld w;
  for (const char* name : {"a", "b", "c", "d", "e"}) w.writer.add(w.get(name, name));
  EXPECT_EQ(w.wire.asked.size(), 4u);
  w.leads = false;
  w.answer(0, 409);
  EXPECT_EQ(w.wire.asked.size(), 4u) << "what waited is dropped";
  EXPECT_TRUE(w.writer.is_free("e"));
  // Another reign: the answer of a write from before it frees no key of now.
  w.leads = true;
  EXPECT_TRUE(w.writer.add(w.get("b", "b")));
  w.answer(1, 200);
  EXPECT_TRUE(w.writer.is_under_way("b"));
  EXPECT_EQ(w.heard, (std::vector<std::string>{"a 409", "b 200"})) << "but it is told";
}

TEST(Writer, BindingsFirstAndNamespacesInTurn) {
  WriterWorld w;
  for (int i = 0; i < 4; ++i) w.writer.add(w.get("first"));
  for (int i = 0; i < 2; ++i) w.writer.add(w.get("flood"));
  w.writer.add(w.get("other", "", "b"));
  Write bind = w.get("bind", "", "c");
  bind.kind = WriteClass::kBind;
  w.writer.add(std::move(bind));
  for (std::size_t i = 0; i < 4; ++i) w.answer(i, 200);
  ASSERT_EQ(w.wire.asked.size(), 8u);
  EXPECT_EQ(w.wire.asked[4].path(), "/api/v1/namespaces/c/pods/bind");
  EXPECT_EQ(w.wire.asked[5].path(), "/api/v1/namespaces/a/pods/flood");
  EXPECT_EQ(w.wire.asked[6].path(), "/api/v1/namespaces/b/pods/other");
}

}  // namespace
}  // namespace berth::control
