#include "text/quantity.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace berth::text {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr auto kSI = Format::kDecimalSI;
constexpr auto kBin = Format::kBinarySI;
constexpr auto kExp = Format::kDecimalExponent;

Quantity q(std::string_view text) {
  auto parsed = parse_quantity(text);
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed.ok() ? *parsed : Quantity();
}

Int128 nano(std::int64_t units, int exponent) {
  Int128 out = units;
  for (int i = -9; i < exponent; ++i) out *= 10;
  return out;
}

struct ParseCase {
  const char* text;
  std::int64_t mantissa;
  int exponent;
  Format format;
};

// The vectors of TestQuantityParse in k8s.io/apimachinery.
const ParseCase kParsed[] = {
    {"0", 0, 0, kSI},
    {"0n", 0, 0, kSI},
    {"0u", 0, 0, kSI},
    {"0m", 0, 0, kSI},
    {"0Ki", 0, 0, kBin},
    {"0k", 0, 0, kSI},
    {"0Mi", 0, 0, kBin},
    {"0M", 0, 0, kSI},
    {"0Gi", 0, 0, kBin},
    {"0G", 0, 0, kSI},
    {"0Ti", 0, 0, kBin},
    {"0T", 0, 0, kSI},
    {"1", 1, 0, kSI},
    {"1Ki", 1024, 0, kBin},
    {"8Ki", 8192, 0, kBin},
    {"7Mi", 7LL << 20, 0, kBin},
    {"6Gi", 6LL << 30, 0, kBin},
    {"5Ti", 5LL << 40, 0, kBin},
    {"4Pi", 4LL << 50, 0, kBin},
    {"3Ei", 3LL << 60, 0, kBin},
    {"10Ti", 10LL << 40, 0, kBin},
    {"100Ti", 100LL << 40, 0, kBin},
    {"5n", 5, -9, kSI},
    {"4u", 4, -6, kSI},
    {"3m", 3, -3, kSI},
    {"9", 9, 0, kSI},
    {"8k", 8, 3, kSI},
    {"50k", 5, 4, kSI},
    {"7M", 7, 6, kSI},
    {"6G", 6, 9, kSI},
    {"5T", 5, 12, kSI},
    {"40T", 4, 13, kSI},
    {"300T", 3, 14, kSI},
    {"2P", 2, 15, kSI},
    {"1E", 1, 18, kSI},
    {"1E-3", 1, -3, kExp},
    {"1e3", 1, 3, kExp},
    {"1E6", 1, 6, kExp},
    {"1e9", 1, 9, kExp},
    {"1E12", 1, 12, kExp},
    {"1e15", 1, 15, kExp},
    {"1E18", 1, 18, kExp},
    {"1e14", 1, 14, kExp},
    {"1e13", 1, 13, kExp},
    {"100.035k", 100035, 0, kSI},
    {"0.001", 1, -3, kSI},
    {"0.0005k", 5, -1, kSI},
    {"0.005", 5, -3, kSI},
    {"0.05", 5, -2, kSI},
    {"0.5", 5, -1, kSI},
    {"0.00050k", 5, -1, kSI},
    {"0.00500", 5, -3, kSI},
    {"0.05000", 5, -2, kSI},
    {"0.50000", 5, -1, kSI},
    {"0.5e0", 5, -1, kExp},
    {"0.5e-1", 5, -2, kExp},
    {"0.5e-2", 5, -3, kExp},
    {"10.035M", 10035, 3, kSI},
    {"1.2e3", 12, 2, kExp},
    {"1.3E+6", 13, 5, kExp},
    {"1.40e9", 14, 8, kExp},
    {"1.53E12", 153, 10, kExp},
    {"1.6e15", 16, 14, kExp},
    {"1.7E18", 17, 17, kExp},
    {"9.01", 901, -2, kSI},
    {"8.1k", 81, 2, kSI},
    {"7.123456M", 7123456, 0, kSI},
    {"6.987654321G", 6987654321, 0, kSI},
    {"5.444T", 5444, 9, kSI},
    {"40.1T", 401, 11, kSI},
    {"300.2T", 3002, 11, kSI},
    {"2.5P", 25, 14, kSI},
    {"1.01E", 101, 16, kSI},
    // saturate and round
    {"3.001n", 4, -9, kSI},
    {"1.1E-9", 2, -9, kExp},
    {"0.0000000001", 1, -9, kSI},
    {"0.0000000005", 1, -9, kSI},
    {"0.00000000050", 1, -9, kSI},
    {"0.5e-9", 1, -9, kExp},
    {"0.9n", 1, -9, kSI},
    {"0.00000012345", 124, -9, kSI},
    {"0.00000012354", 124, -9, kSI},
    {"9Ei", kMax, 0, kBin},
    {"9223372036854775807Ki", kMax, 0, kBin},
    {"12E", 12, 18, kSI},
    // fractions of binary units
    {"100.035Ki", 10243584, -2, kBin},
    {"0.5Mi", 1 << 19, 0, kBin},
    {"0.05Gi", 536870912, -1, kBin},
    {"0.025Ti", 274877906944, -1, kBin},
    // by trolls
    {"0.000000000001Ki", 2, -9, kSI},
    {".001", 1, -3, kSI},
    {".0001k", 100, -3, kSI},
    {"1.", 1, 0, kSI},
    {"1.G", 1, 9, kSI},
    {"1e-2147483648", 1, -9, kExp},
    {"000", 0, 0, kSI},
    {"0e2147483647", 0, 0, kExp},
    {"000000000000000000000000000000000000000000000000000001", 1, 0, kSI},
    {"1.0000000000000000000000000000000000000000000000000000", 1, 0, kSI},
};

TEST(Quantity, ReadsTheVectorsOfKubernetes) {
  for (const ParseCase& c : kParsed) {
    EXPECT_TRUE(q(c.text).nano() == nano(c.mantissa, c.exponent))
        << c.text << " is " << q(c.text).to_string();
    EXPECT_EQ(q(c.text).format(), c.format) << c.text;
    const std::string minus = std::string("-") + c.text;
    EXPECT_TRUE(q(minus).nano() == -nano(c.mantissa, c.exponent)) << minus;
    EXPECT_EQ(q(minus).format(), c.format) << minus;
    EXPECT_TRUE(q(std::string("+") + c.text) == q(c.text)) << c.text;
  }
}

TEST(Quantity, Refuses) {
  for (const char* bad : {"",       "-",       "+",
                          ".",      "-.",      "1.1.M",
                          "1+1.0M", "0.1mi",   "0.1am",
                          "aoeu",   ".5i",     "1i",
                          "-3.01i", "-3.01e-", " 1",
                          "1 ",     "1 Ki",    "1ki",
                          "1K",     "1e",      "1e+",
                          "1E+-3",  "1e++3",   "1e3k",
                          "1Kii",   "--1",     "+-1",
                          "1_000",  "0x10",    "1mm",
                          "1Zi",    "1Y",      "1e99999999999",
                          "1e3.5",  "1,5",     "\xff"}) {
    auto got = parse_quantity(bad);
    EXPECT_FALSE(got.ok()) << bad;
  }
  EXPECT_EQ(parse_quantity("x\x1b").error().message().substr(0, 24), "found quantity \"x\\x1b\", ");
}

TEST(Quantity, PrintsCanonically) {
  const std::pair<const char*, const char*> cases[] = {
      {"0", "0"},
      {"0Ki", "0"},
      {"0e3", "0"},
      {"1500m", "1500m"},
      {"1.5", "1500m"},
      {"0.1", "100m"},
      {"1000m", "1"},
      {"1000", "1k"},
      {"1024", "1024"},
      {"1.5Gi", "1536Mi"},
      {"1024Ki", "1Mi"},
      {"1025Ki", "1025Ki"},
      {"1Gi", "1Gi"},
      {"1023", "1023"},
      {"0.5Ki", "512"},
      {"1023.5Ki", "1048064"},
      {"1e3", "1e3"},
      {"1.5e3", "1500"},
      {"1E6", "1e6"},
      {"1e-3", "1e-3"},
      {"15e2", "1500"},
      {"1e1", "10"},
      {"12E", "12E"},
      {"1e21", "1e21"},
      {"1000E", "1000E"},
      {"0.001k", "1"},
      {"1n", "1n"},
      {"1u", "1u"},
      {"1000n", "1u"},
      {"1.1n", "2n"},
      {"-1.1n", "-2n"},
      {"-1.5Gi", "-1536Mi"},
      {"9Ei", "9223372036854775807"},
      {"100.035Ki", "102435840m"},
      {"1048576Ki", "1Gi"},
      {"1100", "1100"},
      {"100000", "100k"},
      {"3.14159", "3141590u"},
      {"+5", "5"},
      {"1000Ki", "1000Ki"},
      {"0.3Gi", "322122547200m"},
  };
  for (const auto& [in, want] : cases) EXPECT_EQ(q(in).to_string(), want) << in;
}

TEST(Quantity, ValuesRoundAwayFromZeroAndSaturate) {
  struct Case {
    const char* text;
    std::int64_t value;
    std::int64_t milli;
  };
  const Case cases[] = {
      {"0", 0, 0},
      {"1n", 1, 1},
      {"-1n", -1, -1},
      {"1m", 1, 1},
      {"1500m", 2, 1500},
      {"-1500m", -2, -1500},
      {"1.0001", 2, 1001},
      {"1k", 1000, 1'000'000},
      {"1Ki", 1024, 1'024'000},
      {"9223372036854775807", kMax, kMax},
      {"12E", kMax, kMax},
      {"-12E", std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::min()},
      {"9P", 9'000'000'000'000'000, 9'000'000'000'000'000'000},
      {"1e300", kMax, kMax},
      {"-9Ei", -kMax, std::numeric_limits<std::int64_t>::min()},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(q(c.text).value(), c.value) << c.text;
    EXPECT_EQ(q(c.text).milli_value(), c.milli) << c.text;
  }
}

TEST(Quantity, TestsAndCompares) {
  EXPECT_TRUE(q("1k").is_integer());
  EXPECT_FALSE(q("1.5").is_integer());
  EXPECT_TRUE(q("1500m") + q("500m") == q("2"));
  EXPECT_TRUE(q("-1n").is_negative());
  EXPECT_FALSE(q("0").is_negative());
  EXPECT_TRUE(q("-0").is_zero());
  EXPECT_LT(q("50m"), q("100m"));
  EXPECT_GT(q("10000T"), q("100Gi"));
  EXPECT_EQ(q("1Ki"), q("1024"));
  EXPECT_EQ(q("1000m"), q("1"));
}

TEST(Quantity, SumsKeepTheFormatKubernetesKeeps) {
  EXPECT_EQ((q("0") + q("1Gi")).to_string(), "1Gi");
  EXPECT_EQ((q("1Gi") + q("0")).to_string(), "1Gi");
  EXPECT_EQ((q("0") - q("1Gi")).to_string(), "-1Gi");
  EXPECT_EQ((q("1Gi") + q("1G")).format(), kBin);
  EXPECT_EQ((q("1G") + q("1Gi")).format(), kSI);
  EXPECT_EQ((q("100m") - q("100m")).to_string(), "0");
  EXPECT_EQ(Quantity::from_milli(1500).to_string(), "1500m");
  EXPECT_EQ(Quantity::from_units(2048, kBin).to_string(), "2Ki");
  const Quantity most = q("1e200");
  EXPECT_TRUE(most + most == most);
  EXPECT_TRUE(Quantity() - most - most == q("-1e200"));
}

TEST(Quantity, PrintedComesBackTheSame) {
  std::mt19937_64 random(11);
  const char* suffixes[] = {"n",  "u",  "m",  "",   "k",  "M",  "G",  "T",   "P", "E",
                            "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "e-4", "E7"};
  for (int i = 0; i < 100'000; ++i) {
    std::string text = random() % 2 ? "-" : "";
    text += std::to_string(random() >> (random() % 64));
    if (random() % 2) text += "." + std::to_string(random() >> (random() % 64));
    text += suffixes[random() % std::size(suffixes)];
    const Quantity first = q(text);
    const std::string printed = first.to_string();
    const Quantity second = q(printed);
    ASSERT_TRUE(first == second) << text << " " << printed;
    EXPECT_EQ(second.to_string(), printed) << text;
    EXPECT_EQ(printed.find('.'), std::string::npos);
  }
}

}  // namespace
}  // namespace berth::text
