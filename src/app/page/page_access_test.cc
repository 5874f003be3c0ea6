#include "app/page/page_access.h"

#include <gtest/gtest.h>

#include "edge/kube/script_transport_for_test.h"

namespace berth::app {
namespace {

constexpr std::int64_t kAccessSecond = 1'000'000'000;

// An API server that counts, knows the tokens "good..." and allows whatever is asked.
class PageAccessTest : public testing::Test {
 protected:
  // What came of a question: 200, 403 or 503; 0 while nothing is known.
  std::shared_ptr<int> ask(const std::string& token) {
    auto came = std::make_shared<int>(0);
    access_.ask(token, [came](const Status& may) {
      *came = may.ok() ? 200 : may.error().code() == Code::kUnavailable ? 503 : 403;
    });
    return came;
  }
  void serve() {
    while (loop_.run_ready() || seen_ < transport_.asked.size()) {
      for (; seen_ < transport_.asked.size(); ++seen_) {
        const kube::ScriptTransport::Asked& asked = transport_.asked[seen_];
        const bool review = asked.path().ends_with("/tokenreviews");
        (review ? token_reviews_ : access_reviews_) += 1;
        const bool good = asked.request.body.find("\"token\":\"good") != std::string::npos;
        transport_.answer(seen_, 201,
                          !review ? allowed_ ? R"({"status":{"allowed":true}})" : R"({"status":{}})"
                          : good  ? R"({"status":{"authenticated":true,"user":{"username":"u"}}})"
                                  : R"({"status":{"error":"unknown"}})");
      }
    }
  }
  int answer_to(const std::string& token) {
    auto came = ask(token);
    serve();
    return *came;
  }

  FakeClock clock_{1'700'000'000 * kAccessSecond};
  SteppedLoop loop_{clock_};
  kube::ScriptTransport transport_{loop_};
  kube::Client client_{transport_, loop_, Random(1)};
  MetricsRegistry metrics_;
  PageAccess access_{client_, &metrics_};
  bool allowed_ = true;
  std::size_t seen_ = 0, token_reviews_ = 0, access_reviews_ = 0;
};

TEST_F(PageAccessTest, AFloodOfTokensIsNoFloodOfReviews) {
  EXPECT_EQ(answer_to("good one"), 200);
  ASSERT_EQ(token_reviews_, 1u);
  // 300 a second for two minutes and a half. The good one is looked at all the while, past its
  // minute too.
  int late = 0, refused = 0;
  for (int second = 0; second < 150; ++second) {
    for (int i = 0; i < 300; ++i) {
      auto came = ask("bad " + std::to_string(second * 300 + i));
      if (i % 100 == 0) serve();
      late += *came == 503 ? 1 : 0;
      refused += *came == 403 ? 1 : 0;
    }
    serve();
    ASSERT_EQ(answer_to("good one"), 200) << "in second " << second;
    loop_.run_for(kAccessSecond);
  }
  const auto most =
      static_cast<std::size_t>(PageAccess::kMostAtOnce + PageAccess::kPerSecond * 150);
  EXPECT_LE(token_reviews_, most + 10);  // and those of the good one
  EXPECT_GT(late, 43'000);
  EXPECT_GT(refused, 0);
  EXPECT_NE(metrics_.render(MetricFormat::kPrometheusText)
                .find("berth_page_tokens_put_off_total " + std::to_string(late)),
            std::string::npos);
  loop_.run_for(3 * kAccessSecond);
  EXPECT_EQ(answer_to("good two"), 200);  // when it is over
}

TEST_F(PageAccessTest, ANoIsRememberedForSecondsAndAYesForAMinute) {
  for (int i = 0; i < 10; ++i) EXPECT_EQ(answer_to("bad"), 403);
  EXPECT_EQ(token_reviews_, 1u);
  loop_.run_for(11 * kAccessSecond);
  EXPECT_EQ(answer_to("bad"), 403);
  EXPECT_EQ(token_reviews_, 2u);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(answer_to("good"), 200);
  EXPECT_EQ(token_reviews_, 3u);
  EXPECT_EQ(access_reviews_, 2u);
  loop_.run_for(61 * kAccessSecond);
  allowed_ = false;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(answer_to("good"), 403);
  EXPECT_EQ(token_reviews_, 4u);
  EXPECT_EQ(access_reviews_, 3u);
  loop_.run_for(11 * kAccessSecond);
  allowed_ = true;
  EXPECT_EQ(answer_to("good"), 200);
}

TEST_F(PageAccessTest, QuestionsOfOneTokenShareAReview) {
  std::vector<std::shared_ptr<int>> came;
  for (int i = 0; i < 50; ++i) came.push_back(ask("good"));
  serve();
  for (const auto& one : came) EXPECT_EQ(*one, 200);
  EXPECT_EQ(token_reviews_, 1u);
}

TEST_F(PageAccessTest, ReviewsUnderWayAreBounded) {
  for (int i = 0; i < 100; ++i) ask("good " + std::to_string(i));
  loop_.run_ready();
  EXPECT_EQ(transport_.asked.size(), PageAccess::kMaxUnderWay);
  serve();
  EXPECT_EQ(token_reviews_, PageAccess::kMaxUnderWay);
}

}  // namespace
}  // namespace berth::app
