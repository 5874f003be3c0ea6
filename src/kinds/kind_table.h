// Every kind that berth knows, once.
//
// A row says what the kind is called, in which versions it is read and by what, who asks an API
// server for it, and, where it makes pods, how (pod_maker.h). What lists kinds asks this table: the
// client's resources, what the controller watches, what commands list, documents and the shelves of
// the object set, what makes pods, completion, why, lint. What is written elsewhere for others to
// read, definitions, rights, rules of webhooks and the embedded server's own table, is held against
// it by kind_table_test.cc, kinds/schema/builtin_kinds_test.cc and test/deploy.
//
// To add a kind: a row, a reader where a decision needs one, and its tests. Constant; a look-up is
// a walk over some sixty rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/pod_maker.h"
#include "model/spec.h"

namespace berth::text {
class Decoder;
}

namespace berth::kinds {

struct Counted;
struct Gathered;
struct Origin;
struct Shelves;
class Shelf;

// Who asks an API server for all objects of a kind.
namespace asked {
inline constexpr std::uint16_t
    kDecided = 1,        // the controller follows it and commands list it: decisions are made of it
    kWhole = 2,          // the controller keeps it as it is written, because it writes to it
    kBeside = 4,         // commands list it, too
    kRule = 8,           // rules of the API server are read from it
    kMaker = 16,         // makes pods, or claims that pods name: for why
    kScaler = 32,        // written by autoscalers
    kNamed = 64,         // people name it to commands, and shells complete it
    kEachVersion = 128;  // all versions that are read: a server has one of them
}  // namespace asked

// Reads an object into what is gathered; null: an object of this version says nothing to us.
using TakeKind = Counted (*)(const text::Value&, Origin, std::string shown, Gathered&,
                             text::Decoder&);
struct KindVersion {
  std::string_view version;  // "v1"
  TakeKind take = nullptr;
};

struct KindRow {
  std::string_view group;  // "" is core
  std::string_view kind, plural;
  KindVersion versions[3];     // the one to ask for first; those without a name are none
  std::uint16_t asked_by = 0;  // asked::
  bool namespaced = true;
  Shelf* (*shelf)(Shelves&) = nullptr;
  const PodMaker* maker = nullptr;

  bool is_asked(std::uint16_t by) const { return (asked_by & by) != 0; }
  std::span<const KindVersion> read() const;
  std::string api_version(std::size_t version = 0) const;  // "batch/v1"
};

// What is read before what refers to it: pods come last.
std::span<const KindRow> kind_table();

// Null: there is none.
const KindRow* find_kind(std::string_view group, std::string_view kind);
const KindRow* find_kind_of(std::string_view api_version, std::string_view kind);
// The maker of objects of that kind; of kinds of one name in several groups the one of the group,
// where it is known, else the first.
const PodMaker* find_maker(std::string_view api_version, std::string_view kind);

// What people call what makes pods, Jobs aside, each once: "deployment", "pytorchjob". The pods say
// who owns them, so they may be asked for by its name.
const std::vector<std::string>& maker_words();

// The row of an owner that waits in queues as a whole, by its text: "Job/train", "JobSet/train".
// Null: it is of none.
const KindRow* find_queued(std::string_view owner);
// "train" of "JobSet/train".
std::string_view name_of_owner(std::string_view owner);

// By labels of a pod: what had it made and waits in queues as a whole, as owners: "JobSet/train".
std::vector<std::string> makers_named_by(const model::Labels& labels);

}  // namespace berth::kinds
