#include "edge/kube/elector.h"

#include <optional>
#include <utility>

#include "base/check.h"
#include "text/json_writer.h"
#include "text/path.h"
#include "text/rfc3339.h"

namespace berth::kube {
namespace {

constexpr double kJitter = 1.2;  // waits are drawn from [d, 2.2 d), as client-go does

void write_spec(text::JsonWriter& out, const LeaseRecord& record, const text::Value* old) {
  out.object([&] {
    out.field("holderIdentity", record.holder);
    out.field("leaseDurationSeconds", record.duration_s);
    out.field("acquireTime", record.acquire_time);
    out.field("renewTime", record.renew_time);
    out.field("leaseTransitions", record.transitions);
    if (old) {
      for (const text::Member& member : old->members()) {
        if (member.key == "holderIdentity" || member.key == "leaseDurationSeconds" ||
            member.key == "acquireTime" || member.key == "renewTime" ||
            member.key == "leaseTransitions") {
          continue;
        }
        out.key(member.key);
        out.value(member.value);
      }
    }
  });
}

}  // namespace

std::string micro_time(std::int64_t wall_ns) {
  std::int64_t whole = wall_ns / 1'000'000'000 * 1'000'000'000;
  std::string text = text::format_rfc3339(whole);
  std::string micros = std::to_string(1'000'000 + (wall_ns - whole) / 1'000);
  text.insert(text.size() - 1, "." + micros.substr(1));
  return text;
}

LeaseRecord read_lease(const text::Value& lease) {
  LeaseRecord record;
  record.holder = text_at(lease, "spec.holderIdentity");
  record.duration_s = int_at(lease, "spec.leaseDurationSeconds");
  record.transitions = int_at(lease, "spec.leaseTransitions");
  record.acquire_time = text_at(lease, "spec.acquireTime");
  record.renew_time = text_at(lease, "spec.renewTime");
  return record;
}

struct Elector::State : std::enable_shared_from_this<Elector::State> {
  State(Client& client_in, Random random_in, ElectorOptions options_in, ElectorCalls calls_in)
      : client(client_in),
        loop(client_in.loop()),
        random(random_in),
        options(std::move(options_in)),
        calls(std::move(calls_in)) {}

  std::int64_t now() const { return loop.monotonic().ticks_ns(); }
  bool leading() const { return ours && now() < renewed + options.renew_ns; }
  void attempt();
  void got(Answer answer);
  void take_or_wait();
  void write(const LeaseRecord& record, bool create, std::function<void(const Answer&)> done);
  void wrote(const Answer& answer, std::int64_t sent, bool fast);
  void again();
  void observe(const text::Value& lease);
  void lose(const std::string& why);
  void watch_deadline();
  LeaseRecord next_record() const;
  void release(const std::function<void()>& done);
  void cancel_all();
  void request(text::HttpRequest request, Client::Done done);

  Client& client;
  Loop& loop;
  Random random;
  const ElectorOptions options;
  const ElectorCalls calls;
  std::optional<Gauge> is_leader;
  std::optional<Counter> failures;
  LeaseJudge judge;
  text::Document lease;  // as the server last showed it
  bool ours = false;     // we lead, unless the deadline passed
  bool stopped = false;
  std::int64_t renewed = 0;  // when the last successful write was sent
  Call call = 0;
  Loop::Timer timer = 0, deadline = 0;
};

// ---- attempts ------------------------------------------------------------------------------

void Elector::State::request(text::HttpRequest request, Client::Done done) {
  request.headers.push_back({"Accept", "application/json"});
  if (!request.body.empty()) request.headers.push_back({"Content-Type", "application/json"});
  call = client.raw(std::move(request), {.timeout_ns = options.renew_ns / 2, .urgent = true},
                    std::move(done));
}

void Elector::State::attempt() {
  timer = 0;
  if (calls.alive && !calls.alive()) return again();
  // While we lead, the object in hand is good enough to renew from.
  if (leading() && !lease.root().is_null()) {
    const std::int64_t sent = now();
    write(next_record(), false, [this, sent](const Answer& answer) { wrote(answer, sent, true); });
    return;
  }
  auto weak = weak_from_this();
  request({"GET", Client::path_of(resources::leases(), {options.ns, options.name}), {}, {}},
          [weak](Answer answer) {
            if (auto self = weak.lock()) self->got(std::move(answer));
          });
}

void Elector::State::got(Answer answer) {
  call = 0;
  if (answer.not_found()) {
    lease = {};
    judge.forget();
    take_or_wait();
    return;
  }
  if (!answer.ok()) return again();
  observe(answer.body.root());
  lease = std::move(answer.body);
  take_or_wait();
}

void Elector::State::observe(const text::Value& shown) {
  const std::string before = judge.record().holder;
  judge.observe(read_lease(shown), now());
  const std::string& after = judge.record().holder;
  if (after != before && calls.observed) calls.observed(after);
}

void Elector::State::take_or_wait() {
  if (stopped) return;
  const bool held_by_us = judge.record().holder == options.identity;
  if (judge.live(now()) && !held_by_us) {
    if (ours) lose("the lease was taken by " + judge.record().holder);
    return again();
  }
  const std::int64_t sent = now();
  write(next_record(), lease.root().is_null(),
        [this, sent](const Answer& answer) { wrote(answer, sent, false); });
}

LeaseRecord Elector::State::next_record() const {
  LeaseRecord record;
  record.holder = options.identity;
  record.duration_s = options.lease_ns / 1'000'000'000;
  record.renew_time = record.acquire_time = micro_time(loop.wall().now_ns());
  if (lease.root().is_null()) return record;
  LeaseRecord old = read_lease(lease.root());
  const bool same = old.holder == options.identity;
  if (same && !old.acquire_time.empty()) record.acquire_time = old.acquire_time;
  record.transitions = old.transitions + (same ? 0 : 1);
  return record;
}

void Elector::State::write(const LeaseRecord& record, bool create,
                           std::function<void(const Answer&)> done) {
  const text::Value& old = lease.root();
  text::JsonWriter out;
  out.object([&] {
    if (create) {
      out.field("apiVersion", "coordination.k8s.io/v1");
      out.field("kind", "Lease");
      out.object("metadata", [&] {
        out.field("namespace", options.ns);
        out.field("name", options.name);
      });
    }
    for (const text::Member& member : old.members()) {
      if (create || member.key == "spec") continue;
      out.key(member.key);
      out.value(member.value);
    }
    out.key("spec");
    write_spec(out, record, create ? nullptr : old.find("spec"));
  });
  const std::string path = create
                               ? Client::collection_path(resources::leases(), options.ns)
                               : Client::path_of(resources::leases(), {options.ns, options.name});
  text::HttpRequest ask{create ? "POST" : "PUT", path, {}, std::move(out).take()};
  auto weak = weak_from_this();
  request(std::move(ask), [weak, done = std::move(done)](Answer answer) {
    auto self = weak.lock();
    if (!self) return;
    self->call = 0;
    if (answer.ok()) {
      self->observe(answer.body.root());
      self->lease = std::move(answer.body);
    }
    done(answer);
  });
}

void Elector::State::wrote(const Answer& answer, std::int64_t sent, bool fast) {
  if (stopped) return;
  if (answer.ok() && judge.record().holder == options.identity) {
    renewed = sent;
    if (now() >= renewed + options.renew_ns) {  // the answer came too late to be of use
      lose("a renewal took too long");
      return again();
    }
    const bool new_leader = !std::exchange(ours, true);
    if (calls.renewed) calls.renewed(renewed + options.renew_ns);
    watch_deadline();
    again();
    if (!new_leader) return;
    if (is_leader) is_leader->set(1);
    if (calls.started) calls.started();
    return;
  }
  if (failures) failures->add();
  lease = {};  // look at it again
  if (fast) return attempt();
  again();
}

void Elector::State::again() {
  if (stopped) return;
  double factor = ours ? 1.0 : 1.0 + kJitter * random.unit();
  auto delay = static_cast<std::int64_t>(static_cast<double>(options.retry_ns) * factor);
  timer = loop.after(delay, [weak = weak_from_this()] {
    auto self = weak.lock();
    if (self && !self->stopped) self->attempt();
  });
}

void Elector::State::watch_deadline() {
  if (deadline != 0) loop.cancel(deadline);
  deadline = loop.after(renewed + options.renew_ns - now(), [weak = weak_from_this()] {
    auto self = weak.lock();
    if (!self) return;
    self->deadline = 0;
    self->lose("the lease could not be renewed in time");
  });
}

void Elector::State::lose(const std::string& why) {
  if (!std::exchange(ours, false)) return;
  if (deadline != 0) loop.cancel(std::exchange(deadline, 0));
  if (is_leader) is_leader->set(0);
  if (calls.stopped) calls.stopped(why);
}

void Elector::State::cancel_all() {
  if (call != 0) client.cancel(std::exchange(call, 0));
  if (timer != 0) loop.cancel(std::exchange(timer, 0));
  if (deadline != 0) loop.cancel(std::exchange(deadline, 0));
}

// Read first: a renewal may just have been on its way.
void Elector::State::release(const std::function<void()>& done) {
  auto weak = weak_from_this();
  request({"GET", Client::path_of(resources::leases(), {options.ns, options.name}), {}, {}},
          [weak, done](Answer answer) {
            auto self = weak.lock();
            if (!self) return;
            self->call = 0;
            LeaseRecord record = read_lease(answer.body.root());
            if (!answer.ok() || record.holder != self->options.identity) return done();
            self->lease = std::move(answer.body);
            record.holder.clear();
            record.duration_s = 1;
            record.acquire_time = record.renew_time = micro_time(self->loop.wall().now_ns());
            self->write(record, false, [done](const Answer&) { done(); });
          });
}

// ---- the outside ---------------------------------------------------------------------------

Elector::Elector(Client& client, Random random, ElectorOptions options, ElectorCalls calls,
                 MetricsRegistry* metrics) {
  BERTH_ASSERT(!options.identity.empty(), "an elector needs an identity");
  BERTH_ASSERT(options.lease_ns > options.renew_ns && options.renew_ns > options.retry_ns,
               "who leads must stop before others may take the lease");
  state_ = std::make_shared<State>(client, random.split("elector"), std::move(options),
                                   std::move(calls));
  if (!metrics) return;
  const std::string lease = state_->options.ns + "/" + state_->options.name;
  state_->is_leader = metrics
                          ->gauge({.name = "berth_kube_leader",
                                   .help = "1 while this process leads.",
                                   .labels = {"lease"}})
                          .with({lease});
  state_->failures = metrics
                         ->counter({.name = "berth_kube_lease_failures_total",
                                    .help = "Writes of the lease that failed.",
                                    .labels = {"lease"}})
                         .with({lease});
}

Elector::~Elector() {
  state_->stopped = true;
  state_->ours = false;
  state_->cancel_all();
}

void Elector::start() {
  state_->timer = state_->loop.after(0, [weak = std::weak_ptr<State>(state_)] {
    auto self = weak.lock();
    if (self && !self->stopped) self->attempt();
  });
}

void Elector::stop(std::function<void()> done) {
  State& state = *state_;
  const bool held = std::exchange(state.ours, false);
  state.stopped = true;
  state.cancel_all();
  if (state.is_leader) state.is_leader->set(0);
  if (held) return state.release(done);
  state.loop.post(std::move(done));
}

bool Elector::leading() const { return state_->leading(); }
const std::string& Elector::holder() const { return state_->judge.record().holder; }

}  // namespace berth::kube
