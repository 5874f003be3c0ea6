// The built-in kinds of an API server, held against the table of the kinds that berth knows.
#include <gtest/gtest.h>

#include <map>

#include "kinds/kind_table.h"
#include "kinds/schema/schema.h"

namespace berth::sim {
namespace {

TEST(BuiltinKinds, AreCalledAsTheTableCallsThem) {
  std::size_t both = 0;
  for (const KindPtr& kind : builtin_kinds()) {
    const kinds::KindRow* row = kinds::find_kind(kind->group, kind->kind);
    if (row == nullptr) continue;  // stored for others
    ++both;
    EXPECT_EQ(kind->plural, row->plural);
    EXPECT_EQ(kind->namespaced, row->namespaced) << kind->plural;
    EXPECT_EQ(kind->version, row->versions[0].version) << kind->plural;
  }
  EXPECT_GE(both, 30u);
  // Those of Kubernetes' own groups are built in.
  std::map<std::string, bool> groups;
  for (const KindPtr& kind : builtin_kinds()) groups[kind->group] = true;
  for (const kinds::KindRow& row : kinds::kind_table()) {
    if (!groups.contains(std::string(row.group))) continue;
    bool served = false;
    for (const KindPtr& kind : builtin_kinds()) {
      served = served || (kind->kind == row.kind && kind->group == row.group);
    }
    EXPECT_TRUE(served) << row.group << ' ' << row.kind;
  }
}

}  // namespace
}  // namespace berth::sim
