// The promises of edge/kube/transport.h as tests, for every implementation.
//
// A test program derives from TransportWorld, and instantiates once:
//
//   INSTANTIATE_TEST_SUITE_P(Curl, TransportSuite, ::testing::Values(+[]() {
//     return std::unique_ptr<TransportWorld>(new CurlWorld);
//   }));
//
// Include it in one source of a test program. Nothing here depends on how fast things happen.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/loop.h"
#include "edge/kube/transport.h"

namespace berth::kube {

class TransportWorld {
 public:
  virtual ~TransportWorld() = default;
  virtual Transport& transport() = 0;
  virtual void end_transport() = 0;  // destroys it
  // Runs the loop until done() holds; false: it did not within a generous time.
  virtual bool run_until(const std::function<bool()>& done) = 0;
  virtual text::HttpRequest good_request() = 0;     // answered 200, with a body
  virtual text::HttpRequest missing_request() = 0;  // answered 404
  // A stream that is answered 200 and stays open. After note(text) it brings bytes with that text
  // in them, now or later; end_streams() ends it well.
  virtual text::HttpRequest stream_request() = 0;
  virtual void note(const std::string& text) = 0;
  virtual void end_streams() = 0;
};

using TransportWorldMaker = std::unique_ptr<TransportWorld> (*)();

class TransportSuite : public ::testing::TestWithParam<TransportWorldMaker> {
 protected:
  void SetUp() override { world_ = GetParam()(); }
  Transport& transport() { return world_->transport(); }
  bool run_until(const std::function<bool()>& done) { return world_->run_until(done); }
  // A whole round trip: whatever was on its way before has had its chance.
  bool settle() {
    bool back = false;
    transport().send(world_->good_request(), {},
                     [&](text::HttpResponse, const TransportError*) { back = true; });
    return run_until([&] { return back; });
  }

  // What a stream told.
  struct Heard {
    int heads = 0, ends = 0, status = 0;
    bool failed = false, take = true;
    std::string bytes;
    bool has(const std::string& text) const { return bytes.find(text) != std::string::npos; }
  };
  static StreamHandler into(Heard& heard) {
    return {[&](const text::HttpResponse& head) {
              ++heard.heads;
              heard.status = head.status;
              EXPECT_TRUE(head.body.empty());
              EXPECT_EQ(heard.bytes.size() + static_cast<std::size_t>(heard.ends), 0u);
            },
            [&](std::string_view bytes) {
              EXPECT_EQ(heard.heads, 1);
              EXPECT_EQ(heard.ends, 0);
              heard.bytes += bytes;
              return heard.take;
            },
            [&](const TransportError* error) {
              ++heard.ends;
              heard.failed = error != nullptr;
            }};
  }

  std::unique_ptr<TransportWorld> world_;
};

TEST_P(TransportSuite, answers_once_and_not_inside_the_call) {
  int answers = 0;
  bool inside = true;
  text::HttpResponse got;
  Call call = transport().send(world_->good_request(), {},
                               [&](text::HttpResponse response, const TransportError* error) {
                                 ++answers;
                                 EXPECT_FALSE(inside);
                                 EXPECT_EQ(error, nullptr);
                                 got = std::move(response);
                               });
  inside = false;
  EXPECT_NE(call, 0u);
  ASSERT_TRUE(run_until([&] { return answers > 0; }));
  EXPECT_EQ(got.status, 200);
  EXPECT_FALSE(got.body.empty());
  ASSERT_TRUE(settle());
  EXPECT_EQ(answers, 1);
  transport().cancel(call);  // one that ended: nothing happens
}

TEST_P(TransportSuite, a_bad_status_is_an_answer) {
  int status = 0;
  transport().send(world_->missing_request(), {},
                   [&](text::HttpResponse response, const TransportError* error) {
                     EXPECT_EQ(error, nullptr);
                     status = response.status;
                   });
  ASSERT_TRUE(run_until([&] { return status != 0; }));
  EXPECT_EQ(status, 404);
}

TEST_P(TransportSuite, many_at_once_each_once) {
  std::vector<int> answers(40);
  int total = 0;
  for (int& mine : answers) {
    transport().send(world_->good_request(), {},
                     [&](text::HttpResponse response, const TransportError* error) {
                       EXPECT_EQ(error, nullptr);
                       EXPECT_EQ(response.status, 200);
                       ++mine;
                       ++total;
                     });
  }
  ASSERT_TRUE(run_until([&] { return total >= 40; }));
  ASSERT_TRUE(settle());
  for (int mine : answers) EXPECT_EQ(mine, 1);
}

TEST_P(TransportSuite, nothing_is_heard_after_cancel) {
  bool heard = false;
  Heard stream;
  Call call = transport().send(world_->good_request(), {},
                               [&](text::HttpResponse, const TransportError*) { heard = true; });
  Call open = transport().stream(world_->stream_request(), {}, into(stream));
  transport().cancel(call);
  transport().cancel(call);
  transport().cancel(open);
  ASSERT_TRUE(settle());
  world_->end_streams();
  ASSERT_TRUE(settle());
  EXPECT_FALSE(heard);
  EXPECT_EQ(stream.heads + stream.ends, 0);
}

TEST_P(TransportSuite, callbacks_may_start_and_cancel_calls) {
  int answers = 0;
  bool other = false;
  Call victim = 0, self = 0;
  self =
      transport().send(world_->good_request(), {}, [&](text::HttpResponse, const TransportError*) {
        victim = transport().send(world_->good_request(), {},
                                  [&](text::HttpResponse, const TransportError*) { other = true; });
        transport().cancel(victim);
        transport().cancel(self);
        transport().send(world_->good_request(), {},
                         [&](text::HttpResponse, const TransportError*) { ++answers; });
      });
  ASSERT_TRUE(run_until([&] { return answers == 1; }));
  ASSERT_TRUE(settle());
  EXPECT_FALSE(other);
}

TEST_P(TransportSuite, a_stream_has_a_head_bytes_and_one_end) {
  Heard heard;
  transport().stream(world_->stream_request(), {}, into(heard));
  EXPECT_EQ(heard.heads, 0);
  ASSERT_TRUE(run_until([&] { return heard.heads == 1; }));
  EXPECT_EQ(heard.status, 200);
  world_->note("first-note");
  ASSERT_TRUE(run_until([&] { return heard.has("first-note"); }));
  world_->note("second-note");
  ASSERT_TRUE(run_until([&] { return heard.has("second-note"); }));
  EXPECT_LT(heard.bytes.find("first-note"), heard.bytes.find("second-note"));
  world_->end_streams();
  ASSERT_TRUE(run_until([&] { return heard.ends > 0; }));
  EXPECT_FALSE(heard.failed);
  ASSERT_TRUE(settle());
  EXPECT_EQ(heard.ends, 1);
}

TEST_P(TransportSuite, a_stream_answered_with_a_failure_has_its_body) {
  Heard heard;
  transport().stream(world_->missing_request(), {}, into(heard));
  ASSERT_TRUE(run_until([&] { return heard.ends > 0; }));
  EXPECT_EQ(heard.status, 404);
  EXPECT_FALSE(heard.bytes.empty());
  EXPECT_FALSE(heard.failed);
}

TEST_P(TransportSuite, a_stream_that_is_held_waits_for_resume) {
  Heard heard;
  heard.take = false;
  Call call = transport().stream(world_->stream_request(), {}, into(heard));
  ASSERT_TRUE(run_until([&] { return heard.heads == 1; }));
  world_->note("first-note");
  ASSERT_TRUE(run_until([&] { return !heard.bytes.empty(); }));
  const std::string before = heard.bytes;
  world_->note("second-note");
  world_->end_streams();
  ASSERT_TRUE(settle());
  EXPECT_EQ(heard.bytes, before);
  EXPECT_EQ(heard.ends, 0) << "the end comes after the bytes";
  heard.take = true;
  transport().resume(call);
  EXPECT_EQ(heard.bytes, before) << "not inside the call";
  ASSERT_TRUE(run_until([&] { return heard.ends == 1; }));
  EXPECT_TRUE(heard.has("first-note") && heard.has("second-note"));
}

TEST_P(TransportSuite, a_stream_may_be_cancelled_by_its_own_handler) {
  int told = 0;
  Call call = 0;
  StreamHandler handler;
  handler.on_head = [&](const text::HttpResponse&) {
    ++told;
    transport().cancel(call);
  };
  handler.on_data = [&](std::string_view) {
    ++told;
    return true;
  };
  handler.on_end = [&](const TransportError*) { ++told; };
  call = transport().stream(world_->stream_request(), {}, handler);
  ASSERT_TRUE(run_until([&] { return told > 0; }));
  world_->note("first-note");
  world_->end_streams();
  ASSERT_TRUE(settle());
  EXPECT_EQ(told, 1);
}

TEST_P(TransportSuite, its_end_is_silence) {
  bool heard = false;
  Heard stream;
  transport().send(world_->good_request(), {},
                   [&](text::HttpResponse, const TransportError*) { heard = true; });
  transport().stream(world_->stream_request(), {}, into(stream));
  world_->end_transport();
  int rounds = 0;
  world_->run_until([&] { return ++rounds > 20; });
  EXPECT_FALSE(heard);
  EXPECT_EQ(stream.heads + stream.ends, 0);
}

}  // namespace berth::kube
