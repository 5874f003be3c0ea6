// A cluster that is large is read again in part alone (people/why/partial_reading.h): on every case
// of the corpus that says the same as reading it all.
#include <gtest/gtest.h>

#include <iostream>
#include <sstream>

#include "app/why/why_command.h"
#include "case_file.h"
#include "people/why/why.h"

namespace berth::why_corpus {
namespace {

// readings: of a part; null: everything is read each time.
std::string ask_large(const app::ClusterView& view, const people::Subject& subject, int* readings) {
  const app::ViewObjects objects(view);
  app::ReadBudget budget(1);
  people::WhyOptions how = app::why_options(view, objects, budget);
  how.model_first = true;
  how.reread_part = nullptr;
  if (readings != nullptr) {
    how.reread_part = [&](const std::vector<people::ObjectChange>& changes,
                          const kinds::Bound& also) {
      ++*readings;
      return app::inputs_with(view, changes, &also);
    };
  }
  const auto answer = people::Examiner(view.inputs, std::move(how)).why(subject);
  return answer.ok() ? people::why_json(*answer) : answer.error().to_string();
}

// How many readings of a part there were.
int check_in_part(const Case& one) {
  std::istringstream in(one.objects.stream());
  std::ostringstream words;
  FakeClock clock(std::int64_t{1'735'732'800} * 1'000'000'000);
  app::Terminal terminal{.in = in, .out = words, .err = words, .wall = clock, .monotonic = clock};
  app::ViewOptions where;
  where.files = {"-"};
  where.now = one.now;
  const Result<app::ClusterView> view = app::look(where, terminal);
  EXPECT_TRUE(view.ok()) << one.name;
  if (!view.ok()) return 0;
  const people::Subject subject{one.kind, one.ns, one.subject};
  int readings = 0;
  const std::string in_part = ask_large(*view, subject, &readings);
  if (readings > 0) {
    EXPECT_EQ(in_part, ask_large(*view, subject, nullptr)) << one.name;
  }
  return readings;
}

TEST(WhyInPart, SaysWhatTheWholeSays) {
  int cases = 0, parts = 0;
  for (const std::string& name : case_names(BERTH_WHY_CASES)) {
    const Result<Case> one = read_case(BERTH_WHY_CASES, name);
    ASSERT_TRUE(one.ok()) << name;
    const int readings = check_in_part(*one);
    cases += readings > 0 ? 1 : 0;
    parts += readings;
  }
  std::cout << "in part: " << cases << " cases, " << parts << " readings\n";
  EXPECT_GT(cases, 60);
}

}  // namespace
}  // namespace berth::why_corpus
