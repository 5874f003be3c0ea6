#include "base/log.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <limits>
#include <vector>

namespace berth {
namespace {

constexpr std::int64_t kLogTestTime = 1'767'323'045'678'901'234;  // 2026-01-02T03:04:05.678Z

class MemoryLogSink final : public LogSink {
 public:
  void write(LogLevel, std::string_view line) override { lines.emplace_back(line); }
  std::vector<std::string> lines;
};

std::string logged(LogFormat format, std::initializer_list<LogField> fields) {
  MemoryLogSink sink;
  FakeClock clock(kLogTestTime);
  Logger(sink, clock, {.format = format}).info("pod bound", fields);
  return sink.lines.at(0);
}

TEST(Log, TextIsOneReadableLine) {
  EXPECT_EQ(logged(LogFormat::kText, {{"pod", "team-a/train-0"}, {"gpus", 4}, {"gang", true}}),
            "2026-01-02T03:04:05.678Z INFO \"pod bound\" pod=team-a/train-0 gpus=4 gang=true");
}

TEST(Log, JsonIsOneObjectWithTypedValues) {
  EXPECT_EQ(logged(LogFormat::kJson, {{"pod", "a/b"}, {"n", -4}, {"u", 7U}, {"x", 0.5}}),
            "{\"ts\":\"2026-01-02T03:04:05.678Z\",\"level\":\"info\",\"msg\":\"pod bound\","
            "\"pod\":\"a/b\",\"n\":-4,\"u\":7,\"x\":0.5}");
}

TEST(Log, AValueCannotForgeALineOrAField) {
  std::string attack = "x\n2026-01-02T03:04:05.678Z ERROR \"fake\" a=b\r\x1b[2J\xE2\x80\xA8 \x7f";
  for (LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    std::string line = logged(format, {{"name", attack}});
    for (char c : line) EXPECT_GE(static_cast<unsigned char>(c), 0x20U);
    EXPECT_EQ(line.find("\xE2\x80\xA8"), std::string::npos);
    EXPECT_NE(line.find("x\\n2026"), std::string::npos);
    EXPECT_NE(line.find("\\\"fake\\\""), std::string::npos);
    EXPECT_NE(line.find("\\u001b"), std::string::npos);
    EXPECT_NE(line.find("\\u2028"), std::string::npos);
  }
}

TEST(Log, AMessageAndAKeyCannotForgeEither) {
  MemoryLogSink sink;
  FakeClock clock(kLogTestTime);
  Logger(sink, clock).info("a\nb", {{"k=1 \n", "v"}, {"", "w"}});
  EXPECT_EQ(sink.lines.at(0), "2026-01-02T03:04:05.678Z INFO \"a\\nb\" k_1__=v _=w");
}

TEST(Log, BytesThatAreNoUtf8AreMadeVisible) {
  EXPECT_NE(logged(LogFormat::kText, {{"v", "a\xFFz"}}).find("v=\"a\\xffz\""), std::string::npos);
  EXPECT_NE(logged(LogFormat::kJson, {{"v", "a\xFFz"}}).find("\"v\":\"a\\ufffdz\""),
            std::string::npos);
  EXPECT_NE(logged(LogFormat::kText, {{"v", "caf\xC3\xA9"}}).find("v=\"caf\xC3\xA9\""),
            std::string::npos);
}

TEST(Log, EmptyAndSpacedTextIsQuoted) {
  EXPECT_TRUE(logged(LogFormat::kText, {{"v", ""}}).ends_with(" v=\"\""));
  EXPECT_TRUE(logged(LogFormat::kText, {{"v", "a b"}}).ends_with(" v=\"a b\""));
  EXPECT_TRUE(logged(LogFormat::kText, {{"v", "a=b"}}).ends_with(" v=\"a=b\""));
}

TEST(Log, NumbersThatJsonLacksAreText) {
  double infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(logged(LogFormat::kJson, {{"v", infinity}}).ends_with("\"v\":\"inf\"}"));
  EXPECT_TRUE(logged(LogFormat::kText, {{"v", infinity}}).ends_with(" v=inf"));
}

TEST(Log, ALongValueIsCutAndSaysSo) {
  MemoryLogSink sink;
  FakeClock clock(kLogTestTime);
  Logger log(sink, clock, {.max_value_bytes = 8});
  log.info("m", {{"bare", "0123456789"}, {"wide", "\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9"}});
  EXPECT_NE(sink.lines[0].find("bare=\"01234567...(+2 bytes)\""), std::string::npos);
  EXPECT_NE(sink.lines[0].find("\xC3\xA9...(+2 bytes)\""), std::string::npos);  // whole characters
}

TEST(Log, ALineIsBoundedAndStaysValidJson) {
  MemoryLogSink sink;
  FakeClock clock(kLogTestTime);
  Logger log(sink, clock, {.format = LogFormat::kJson, .max_line_bytes = 400});
  std::string big(300, '\n');
  std::vector<LogField> fields{{"a", big}, {"b", 1}, {"c", big}};
  log.log(LogLevel::kError, std::string(1'000, 'm'), fields);
  const std::string& line = sink.lines.at(0);
  EXPECT_LE(line.size(), 400U);
  boost::json::error_code failed;
  boost::json::value parsed = boost::json::parse(line, failed);
  ASSERT_FALSE(failed) << line;
  EXPECT_EQ(parsed.at("fields_left_out").as_int64(), 2);
  EXPECT_EQ(parsed.at("b").as_int64(), 1);
}

TEST(Log, LessUrgentLinesAreDropped) {
  MemoryLogSink sink;
  FakeClock clock;
  Logger log(sink, clock, {.level = LogLevel::kWarn});
  log.debug("d");
  log.info("i");
  log.warn("w");
  log.error("e");
  ASSERT_EQ(sink.lines.size(), 2U);
  EXPECT_EQ(sink.lines[0], "1970-01-01T00:00:00.000Z WARN \"w\"");
  EXPECT_FALSE(log.enabled(LogLevel::kInfo));
}

TEST(Log, TimesBefore1970AreStillTimes) {
  MemoryLogSink sink;
  FakeClock clock(-1);
  Logger(sink, clock).info("m");
  EXPECT_TRUE(sink.lines.at(0).starts_with("1969-12-31T23:59:59.999Z "));
}

}  // namespace
}  // namespace berth
