#include "base/bug_report.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth {
namespace {

class BugLogSink final : public LogSink {
 public:
  void write(LogLevel, std::string_view line) override { lines.emplace_back(line); }
  std::vector<std::string> lines;
};

TEST(BugReporter, LogsAndCountsByPlaceWhileItLives) {
  BugLogSink sink;
  FakeClock clock;
  Logger log(sink, clock);
  MetricsRegistry metrics;
  {
    BugReporter reporter(log, metrics);
    for (int i = 0; i < 2; ++i) BERTH_BUG("free went below zero");
  }
  ASSERT_EQ(sink.lines.size(), 2U);
  EXPECT_NE(sink.lines[0].find("ERROR \"bug survived\" site=base/bug_report_test.cc:"),
            std::string::npos);
  EXPECT_NE(sink.lines[0].find("why=\"free went below zero\""), std::string::npos);
  std::string text = metrics.render(MetricFormat::kPrometheusText);
  EXPECT_NE(text.find("berth_bug_total{site=\"base/bug_report_test.cc:"), std::string::npos);
  EXPECT_NE(text.find("\"} 2\n"), std::string::npos);
}

TEST(BugReporterDeath, AfterItABugAbortsAgain) {
  BugLogSink sink;
  FakeClock clock;
  Logger log(sink, clock);
  MetricsRegistry metrics;
  {
    BugReporter reporter(log, metrics);
  }
  EXPECT_DEATH(BERTH_BUG("late"), "bug: late");
}

}  // namespace
}  // namespace berth
