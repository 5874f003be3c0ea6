// The state of one resolve(): what is settled so far. Private to this folder.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "objects/gathered.h"

namespace berth::objects {

class Resolver {
 public:
  Resolver(Gathered& gathered, const ManifestOptions& options) : in_(gathered), options_(options) {}

  // In this order.
  void drop_duplicates();
  void nodes();
  void indexes();
  void groups();
  void jobs();
  void pods();
  void budgets();
  Inputs finish();

 private:
  using NameSet = std::set<std::string, std::less<>>;

  // Priority and group of a pod or a job's template; false when it is refused. T is what the
  // notes go to.
  template <class T>
  bool settle(const Found<T>& at, const std::string& path, PodObject& pod);
  template <class T>
  bool settle_priority(const Found<T>& at, const std::string& path, PodObject& pod);
  template <class T>
  bool settle_group(const Found<T>& at, const std::string& path, PodObject& pod);
  template <class T>
  void take_topology(const Found<T>& at, const Membership& member, const model::PodSpec& pod,
                     model::GangSpec& gang);
  void expand(Found<JobObject>& job, std::vector<PodObject*>& existing, const NameSet& taken);
  bool make_job_gang(Found<JobObject>& job, std::vector<PodObject*>& existing);
  void check_indices(const Found<PodObject>& at, model::PodSpec& pod);
  void add_pod(Found<PodObject>& found);

  struct Holding {
    std::string node;
    std::vector<int> indices;
  };

  Gathered& in_;
  ManifestOptions options_;
  Inputs out_;
  PriorityIndex priorities_;
  VolumeIndex volumes_;
  std::map<std::string, model::GangSpec, std::less<>> gangs_;  // by ns/name
  std::map<std::string, Holding, std::less<>> holders_;        // by pod UID
  NameSet node_label_keys_;
};

std::string qualified(const std::string& ns, const std::string& name);

}  // namespace berth::objects
