// Pods that kubelets refuse: which of them are deleted, and which nodes are left alone for a while.
//
// Nobody takes a refused pod away, and a ReplicaSet makes the next one at once: a GPU that is
// advertised and does not work fills a cluster with failed pods. Two answers bound that:
// - Of each owner the latest `keep` stay to look at and older ones are deleted, of all
//   `deletes_per_second`. Of an owner that waits for the name to be free, none stays. Pods that
//   nobody would make again are never deleted.
// - A node that refuses `refusals` pods within `window_ns` is avoided: it gets a taint. Trouble
//   that comes back is avoided twice as long, up to `longest_ns`.
//
// Whoever makes pods must not be able to take nodes away, so only what was placed by us, on GPUs
// that we chose, speaks against a node (`placed`), and of each owner one refusal counts. More of
// one owner count only while it is refused on at most `owner_nodes`: whoever is refused wherever it
// goes is at fault itself, and waits (`wanders`). At most `most_percent` of the fleet is avoided at
// a time; what is beyond it is told, and gets no pod for `pause_ns` after each refusal, so that a
// fleet that is broken as a whole makes no storm.
//
// A node is released by evidence. Something of it changed (its boot, what it advertises, the health
// of a GPU): it is tried a sixth into its time. Otherwise it is tried when the time is over. On
// trial one refusal is enough to avoid it again, a pod that starts ends the trial.
//
// Pure: told what the API shows, it says what should be done; it never does it. What it knows it
// can learn from the API again: refused pods are there, a taint carries the level and when it came.
// Times are monotonic ticks. One thread. Memory: an entry for each refused pod and for each node
// that the API has. due() costs what it answers, and the nodes in trouble.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace berth::react {

inline constexpr std::string_view kRejectingTaint = "berth.dev/rejecting";

// Whether status.reason of a failed pod says that its kubelet never started it.
bool rejection_reason(std::string_view reason);
// Whether it speaks against the node; others are of the pod's own rules.
bool speaks_against_node(std::string_view reason);

struct RejectionPolicy {
  int keep = 2;
  int deletes_per_second = 10;
  int refusals = 3;
  std::int64_t window_ns = 600'000'000'000;
  std::int64_t first_ns = 60'000'000'000;
  std::int64_t longest_ns = 1'920'000'000'000;
  int most_percent = 25;  // of the fleet that is avoided at a time; one node always may be
  std::size_t owner_nodes = 3;
  std::int64_t pause_ns = 10'000'000'000;
  std::int64_t forgiven_ns = 7'200'000'000'000;  // after the last refusal the level is forgotten
};

struct RejectedPod {
  std::string name;  // "ns/name"
  std::string uid;
  std::string owner;             // "ns/ReplicaSet/x": who makes it again; empty: nobody
  bool placed = true;            // by us, on GPUs that we chose; others count against no node
  bool replaced_beside = false;  // the owner does not wait for it to be gone
  std::string node, reason;
  std::int64_t at = 0;
};

struct PodToDelete {
  std::string name, uid, owner, node, reason;
};
struct NodeToAvoid {
  std::string node;
  int level = 0;
  std::string reason;  // of the last refusal
  int refused = 0;     // pods, that led to it
  std::int64_t for_ns = 0;
};
struct NodeToRelease {
  std::string node;
  bool changed = false;  // false: its time is over
};
struct Reaction {
  std::vector<PodToDelete> deletes;
  std::vector<NodeToAvoid> avoid;
  std::vector<NodeToRelease> release;
  std::vector<std::string> spared;  // nodes that would be avoided if fewer were
};

class RejectedPods {
 public:
  explicit RejectedPods(RejectionPolicy policy = {}) : policy_(policy) {}

  // Told again of the same UID it does nothing. pod.at may lie before now: it was found so.
  void rejected(const RejectedPod& pod, std::int64_t now);
  void gone(const std::string& name);
  void started(const std::string& node, std::int64_t now);
  void not_deleted(const std::string& name);  // the write failed: it is due again
  void none_deleted();                        // so did all that are under way

  // What a node shows of itself, as a digest; two sources are told apart.
  enum class Source : std::uint8_t { kNode, kAgent };
  void facts(const std::string& node, Source source, std::uint64_t digest);
  // Whether the node is one of the fleet that the share is taken of: it has GPUs.
  void in_fleet(const std::string& node, bool yes);
  // The taint as the API has it: its level and how long it has been there; absent: no taint.
  struct Mark {
    int level = 0;
    std::int64_t age_ns = 0;
  };
  void marked(const std::string& node, std::optional<Mark> mark, std::int64_t now);
  void node_gone(const std::string& node);

  // What is to be done now. Deletes are told once; nodes until marked() shows the change.
  Reaction due(std::int64_t now);
  bool avoids(const std::string& node) const;
  // Whether the owner was refused on more nodes than its own word is taken for.
  bool wanders(const std::string& owner) const;
  std::set<std::string> avoided() const;             // also those that pause
  std::size_t most_avoided() const;                  // of the fleet as it is
  std::size_t kept() const { return pods_.size(); }  // refused pods that are there

 private:
  struct Pod {
    RejectedPod what;
    bool asked = false;  // to be deleted
  };
  struct Node {
    // Within the window: who was refused and when, oldest first. At most 64.
    std::deque<std::pair<std::int64_t, std::string>> refusals;
    bool avoided = false, trial = false, marked = false, changed = false;
    bool before = false;  // it was avoided, and that is not forgiven
    int level = 0, refused = 0;
    std::int64_t since = 0, until = 0, last_refusal = 0;
    std::string reason;
    bool spared = false;  // it is to be avoided, and too many are
    bool paused = false;  // spared, and refused a pod just now
    std::uint64_t digests[2] = {0, 0};
    bool known[2] = {false, false};
    bool quiet() const { return !avoided && !trial && !marked && refusals.empty(); }
  };
  using Order = std::pair<std::int64_t, std::string>;  // when, name

  std::int64_t span(int level) const;
  void count(Node& node, const RejectedPod& pod, std::int64_t now);
  int voices(Node& node, std::int64_t now);
  void avoid(Node& node, std::int64_t now);
  std::size_t avoided_now() const;
  void look_again(const std::string& name, Node& node, bool room, std::int64_t now, Reaction& out);
  void due_nodes(std::int64_t now, Reaction& out);
  void release(Node& node, std::int64_t now);
  bool take_token(std::int64_t now);

  RejectionPolicy policy_;
  std::map<std::string, Pod> pods_;               // by name
  std::map<std::string, std::set<Order>> owned_;  // by owner, those not asked for yet
  std::set<std::string> crowded_;                 // owners with more than may stay
  std::map<std::string, Node> nodes_;
  std::set<std::string> troubled_;  // nodes that are not quiet
  std::set<std::string> fleet_;
  // By owner: the nodes that refused it, and when last. Forgotten after the window.
  std::map<std::string, std::map<std::string, std::int64_t>> refused_on_;
  std::int64_t tokens_ = -1, tokens_at_ = 0;  // in thousandths
};

}  // namespace berth::react
