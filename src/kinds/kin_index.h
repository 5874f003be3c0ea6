// Which objects have to do with one another, by the names that they bear and say.
//
// Objects are kin when one says a name that the other bears or says, directly or through others: a
// Job, its pods, the Workload that was made for it and the group that they are in. Names are those
// of one namespace and count whatever the kind: a pod and a Job of one name are kin, too. So what
// is resolved of one kin depends on no object of another. A change costs the kins that it touches.
// Ids of kins are never used again. Private to this folder. On one thread.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace berth::kinds {

class KinIndex {
 public:
  struct Kin {
    std::uint64_t id = 0;
    std::vector<std::string_view> objects;  // sorted; until the next call of a method
  };
  struct Changes {
    std::vector<std::uint64_t> gone;  // some of whose objects may be in fresh ones
    std::vector<Kin> fresh;           // or not as they were
  };

  // New, or as it is now. names: "ns/name", one at least, all of one namespace.
  void put(std::string_view object, const std::vector<std::string>& names);
  void remove(std::string_view object);
  // The objects that say the one and those that say the other belong together for good.
  void tie(const std::string& name, const std::string& other);
  void touch(std::string_view object);
  void touch_namespace(std::string_view ns);
  void touch_all();
  Changes take_changes();

 private:
  struct Object;
  struct Name {
    std::vector<std::pair<const std::string, Object>*> objects;
    std::uint64_t kin = 0;  // 0: to be found
  };
  using Names = std::unordered_map<std::string, Name>;
  using NameRef = Names::value_type*;
  struct Object {
    std::vector<NameRef> names;
    std::uint64_t kin = 0;  // that it was found for last
  };
  using Objects = std::unordered_map<std::string, Object>;
  using ObjectRef = Objects::value_type*;

  void leave_names(ObjectRef object);
  void touch_names(const Object& object);

  Objects objects_;
  Names names_;
  std::unordered_map<std::uint64_t, std::vector<NameRef>> kins_;
  std::set<std::uint64_t> touched_;
  std::vector<NameRef> fresh_;  // names of no kin yet
  std::uint64_t last_ = 0;
};

}  // namespace berth::kinds
