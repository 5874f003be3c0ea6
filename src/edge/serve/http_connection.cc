#include "edge/serve/http_connection.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/crash_point.h"

namespace berth::serve {
namespace {

constexpr std::size_t kSmall = 4 * 1024;   // is copied behind the head instead of kept apart
constexpr std::size_t kPiece = 16 * 1024;  // of small bytes in one piece; a TLS record
constexpr std::size_t kReadsPerTurn = 8;   // then the others have theirs
constexpr std::int64_t kLingerNs = 5'000'000'000;

text::HttpResponse plain_answer(int status, std::string_view text) {
  return {status, {{"Content-Type", "text/plain; charset=utf-8"}}, std::string(text) + "\n"};
}

}  // namespace

HttpConnection::HttpConnection(ConnectionHost& host, std::uint64_t id, int fd, TlsContext context,
                               std::string peer)
    : host_(host),
      id_(id),
      peer_(std::move(peer)),
      socket_(fd, std::move(context)),
      parser_({.head_bytes = host.options.max_head_bytes,
               .body_bytes = host.options.max_body_bytes,
               .body_bytes_of = host.options.max_body_of}),
      request_held_(host.requests),
      answer_held_(host.answers),
      since_ns_(host.now_ns) {}

HttpConnection::~HttpConnection() { lose_slots(); }

bool HttpConnection::paused() const {
  return state_ == State::kOpen &&
         (slots_.size() >= host_.options.max_in_work || unsent_ > host_.options.max_unsent_bytes);
}

HttpConnection::Standing HttpConnection::standing() const {
  if (state_ != State::kOpen) return Standing::kIdle;
  if (!slots_.empty()) return Standing::kAtWork;
  if (unsent_ > 0) return Standing::kUnread;
  return inside() ? Standing::kUnfinished : Standing::kIdle;
}

void HttpConnection::give_up_request() {
  host_.cut(Cut::kMemory);
  refuse(503, "too many requests are under way; try again");
}

void HttpConnection::cut(Cut why) {
  host_.cut(why);
  close();
}

void HttpConnection::on_ready(bool readable, bool writable, bool failed) {
  if (state_ == State::kClosed) return;
  if (readable) readable_ = true;
  if (writable) writable_ = true;
  if (writable && socket_.tls()) readable_ = true;  // reading, too, may have waited for room
  if (failed) return close();
  if (state_ == State::kHandshake) {
    Io io = socket_.handshake();
    if (io == Io::kAgain) return;
    if (io != Io::kOk) return close();
    state_ = State::kOpen;
    readable_ = true;  // the first request may be inside already
  }
  if (writable) flush();
  if (readable_ && !paused()) read();
}

void HttpConnection::read() {
  if (state_ == State::kLingering || (last_ && state_ == State::kOpen)) {
    // What comes after the last request is thrown away; an end means that the peer went.
    Io io = socket_.discard();
    if (io == Io::kClosed || io == Io::kFailed) return close();
    readable_ = io == Io::kOk;
    return;
  }
  for (std::size_t i = 0; i < kReadsPerTurn && state_ == State::kOpen && !paused() && !last_; ++i) {
    if (held_) {  // was paused: what came before goes first
      held_ = false;
      take_bytes({});
      if (state_ != State::kOpen || paused() || last_) return;
    }
    std::size_t got = 0;
    Io io = socket_.read(host_.scratch.data(), host_.scratch.size(), got);
    if (io == Io::kAgain) {
      readable_ = false;
      return;
    }
    if (io != Io::kOk) {
      flush();  // answers that are complete, should the peer have closed one way only
      return close();
    }
    take_bytes({host_.scratch.data(), got});
  }
}

void HttpConnection::take_bytes(std::string_view bytes) {
  if (!inside() && bytes.find_first_not_of("\r\n") != std::string_view::npos) {
    since_ns_ = host_.now_ns;
    arrived_ = 0;
  }
  arrived_ += bytes.size();
  if (left_.empty()) {
    std::size_t used = parse(bytes);
    if (state_ == State::kOpen && !last_) left_ = bytes.substr(used);
  } else {
    std::string all = std::exchange(left_, {});
    all += bytes;
    std::size_t used = parse(all);
    if (state_ == State::kOpen && !last_) {
      all.erase(0, used);
      if (!all.empty()) left_ = std::move(all);
    }
  }
  count_request();
}

void HttpConnection::count_request() {
  const bool reads = state_ == State::kOpen && !last_;
  if (!reads) parser_.drop();
  const std::size_t left = left_.empty() ? 0 : left_.capacity();
  if (request_held_.set(reads ? left + parser_.held() : 0)) host_.make_request_room();
}

std::size_t HttpConnection::parse(std::string_view bytes) {
  std::size_t total = 0;
  while (total < bytes.size() && state_ == State::kOpen && !last_ && !paused()) {
    std::size_t used = 0;
    HttpParser::State parsed = parser_.feed(bytes.substr(total), used);
    total += used;
    if (parsed == HttpParser::State::kFailed) {
      refuse(parser_.status(), parser_.problem());
      break;
    }
    if (parsed == HttpParser::State::kMore) {
      if (parser_.asks_to_continue() && slots_.empty()) append("HTTP/1.1 100 Continue\r\n\r\n");
      if (unsent_ > 0 && slots_.empty()) flush();
      break;
    }
    hand_out(parser_.take());
  }
  held_ = total < bytes.size() && paused();
  return total;
}

void HttpConnection::hand_out(ParsedRequest parsed) {
  since_ns_ = host_.now_ns;
  asked_ = true;
  arrived_ = 0;
  HeldBytes held(host_.requests);
  held.set(parsed.request.body.capacity());
  auto exchange = std::make_shared<HttpExchange>(host_.queue, id_, next_sequence_, std::move(held));
  slots_.push_back({next_sequence_++,
                    exchange,
                    parsed.request.method == "HEAD",
                    parsed.keep_alive,
                    parsed.http10,
                    Phase::kWaiting,
                    {}});
  if (!parsed.keep_alive) last_ = true;
  BERTH_CRASH_POINT("http-request");
  host_.handler(std::move(parsed.request), std::move(exchange));
}

// An answer of our own, behind those that are due before it; then the connection ends.
void HttpConnection::refuse(int status, std::string_view problem) {
  last_ = true;
  slots_.push_back({next_sequence_++, {}, false, false, false, Phase::kWaiting, {}});
  ServerEvent event;
  event.kind = ServerEvent::Kind::kRespond;
  event.sequence = slots_.back().sequence;
  event.response = plain_answer(status, problem);
  if (status == 503) event.response.headers.push_back({"Retry-After", "1"});
  left_ = {};
  count_request();  // what has come of it goes, and its memory
  apply(event);
  flush();
}

void HttpConnection::apply(ServerEvent& event) {
  if (state_ != State::kOpen || slots_.empty()) return;
  std::uint64_t index = event.sequence - slots_.front().sequence;
  if (index >= slots_.size()) return;  // it was cut off before
  Slot& slot = slots_[index];
  if (slot.phase == Phase::kDone) return;
  if (event.kind == ServerEvent::Kind::kOverflow) return cut(Cut::kSlowReader);
  std::size_t size = event.bytes ? event.bytes->size() : event.response.body.size();
  bool counted = event.kind == ServerEvent::Kind::kBegin || event.kind == ServerEvent::Kind::kWrite;
  if (counted && size > 0) {
    if (auto exchange = slot.exchange.lock()) {
      exchange->add_unsent(size);
      exchange->moved(size);
    }
  }
  if (index > 0) {
    slot.pending.push_back(std::move(event));
    return;
  }
  emit(slot, event);
  next_slots();
}

void HttpConnection::emit(Slot& slot, ServerEvent& event) {
  switch (event.kind) {
    case ServerEvent::Kind::kRespond:
      return send_response(slot, std::move(event.response));
    case ServerEvent::Kind::kBegin:
      return send_begin(slot, std::move(event.response));
    case ServerEvent::Kind::kWrite:
      return send_chunk(slot, std::move(event.bytes));
    case ServerEvent::Kind::kEnd:
      return send_end(slot);
    case ServerEvent::Kind::kDropped:
      if (slot.phase == Phase::kStream) return send_end(slot);
      return send_response(slot, plain_answer(500, "the request was not answered"));
    default:
      return;
  }
}

void HttpConnection::next_slots() {
  while (state_ == State::kOpen && !slots_.empty() && slots_.front().phase == Phase::kDone) {
    if (auto exchange = slots_.front().exchange.lock()) exchange->settle();
    bool keep = slots_.front().keep_alive;
    slots_.erase(slots_.begin());
    if (!keep || (host_.draining && slots_.empty())) last_ = true;
    if (!keep) lose_slots();  // requests behind the last one
    if (slots_.empty()) {
      since_ns_ = host_.now_ns;
      return;
    }
    std::vector<ServerEvent> pending = std::exchange(slots_.front().pending, {});
    for (ServerEvent& event : pending) {
      if (slots_.front().phase != Phase::kDone) emit(slots_.front(), event);
    }
  }
}

void HttpConnection::send_response(Slot& slot, text::HttpResponse response) {
  if (host_.draining && slots_.size() == 1) slot.keep_alive = false;
  HeadOptions head;
  head.body_size = response.body.size();
  head.keep_alive = slot.keep_alive;
  head.http10 = slot.http10;
  head.date = host_.date;
  std::string& out = tail();
  std::size_t before = out.size();
  append_head(out, response, head);
  grew(out.size() - before);
  if (!slot.head_only && has_body(response.status)) append_own(std::move(response.body));
  slot.phase = Phase::kDone;
  host_.answered(response.status);
}

void HttpConnection::send_begin(Slot& slot, text::HttpResponse response) {
  if (slot.http10 || (host_.draining && slots_.size() == 1)) slot.keep_alive = false;
  HeadOptions head;
  head.framing = slot.http10 ? Framing::kClose : Framing::kChunked;
  head.keep_alive = slot.keep_alive;
  head.http10 = slot.http10;
  head.date = host_.date;
  std::string& out = tail();
  std::size_t before = out.size();
  append_head(out, response, head);
  grew(out.size() - before);
  slot.phase = Phase::kStream;
  host_.answered(response.status);
  if (!response.body.empty()) {
    send_chunk(slot, std::make_shared<const std::string>(std::move(response.body)));
  }
  if (!host_.draining) return;
  if (auto exchange = slot.exchange.lock()) exchange->lose();
  send_end(slot);
}

void HttpConnection::send_chunk(const Slot& slot, std::shared_ptr<const std::string> bytes) {
  if (slot.phase != Phase::kStream || slot.head_only) return;
  if (!slot.http10) {
    std::string& out = tail();
    std::size_t before = out.size();
    append_chunk_size(out, bytes->size());
    grew(out.size() - before);
  }
  append_shared(std::move(bytes));
  if (!slot.http10) append("\r\n");
}

void HttpConnection::send_end(Slot& slot) {
  if (slot.phase == Phase::kStream && !slot.http10 && !slot.head_only) append("0\r\n\r\n");
  slot.phase = Phase::kDone;
}

std::string& HttpConnection::tail() {
  bool fits = out_.size() > out_first_ && !out_.back().shared && out_.back().own.size() < kPiece;
  if (!fits) {
    out_.emplace_back();
    out_.back().own = std::exchange(spare_, {});
    out_.back().own.clear();
  }
  return out_.back().own;
}

void HttpConnection::append(std::string_view bytes) {
  tail() += bytes;
  grew(bytes.size());
}

void HttpConnection::grew(std::size_t own_bytes) {
  unsent_ += own_bytes;
  own_ += own_bytes;
}

void HttpConnection::append_own(std::string bytes) {
  if (bytes.size() <= kSmall) return append(bytes);
  grew(bytes.size());
  out_.emplace_back();
  out_.back().own = std::move(bytes);
}

void HttpConnection::append_shared(std::shared_ptr<const std::string> bytes) {
  if (bytes->size() <= 128) return append(*bytes);
  unsent_ += bytes->size();
  out_.emplace_back();
  out_.back().shared = std::move(bytes);
}

// TLS: as much as a record holds, gathered. The same bytes come first after kAgain, as OpenSSL
// demands, because the queue only grows at its end.
Io HttpConnection::send_some(std::size_t& sent) {
  if (socket_.tls()) {
    std::string_view first = out_[out_first_].rest();
    if (first.size() >= kPiece || out_.size() == out_first_ + 1) {
      return socket_.write(first.substr(0, kPiece), sent);
    }
    std::size_t filled = 0;
    for (std::size_t i = out_first_; i < out_.size() && filled < kPiece; ++i) {
      std::string_view rest = out_[i].rest().substr(0, kPiece - filled);
      std::memcpy(host_.scratch.data() + filled, rest.data(), rest.size());
      filled += rest.size();
    }
    return socket_.write({host_.scratch.data(), filled}, sent);
  }
  std::array<iovec, 32> pieces;
  int count = 0;
  for (std::size_t i = out_first_; i < out_.size() && count < 32; ++i, ++count) {
    std::string_view rest = out_[i].rest();
    pieces[static_cast<std::size_t>(count)] = {const_cast<char*>(rest.data()), rest.size()};
  }
  return socket_.write(pieces.data(), count, sent);
}

void HttpConnection::sent(std::size_t bytes) {
  unsent_ -= bytes;
  if (bytes > 0) since_ns_ = host_.now_ns;
  while (out_first_ < out_.size()) {
    Piece& piece = out_[out_first_];
    std::size_t here = std::min(bytes, piece.rest().size());
    piece.sent += here;
    bytes -= here;
    if (!piece.rest().empty()) return;
    own_ -= piece.own.size();
    if (!piece.shared && piece.own.capacity() > spare_.capacity() &&
        piece.own.capacity() <= 2 * kSmall) {
      spare_ = std::move(piece.own);
    }
    piece = {};
    ++out_first_;
  }
  out_.clear();
  out_first_ = 0;
}

void HttpConnection::flush() {
  if (state_ != State::kOpen) return;
  while (unsent_ > 0 && writable_) {
    std::size_t done = 0;
    Io io = send_some(done);
    if (io == Io::kAgain) writable_ = false;
    if (io == Io::kClosed || io == Io::kFailed) return close();
    sent(done);
  }
  if (out_first_ > 64) {  // a slow reader: what was sent goes
    out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(out_first_));
    out_first_ = 0;
  }
  if (!slots_.empty() && slots_.front().phase == Phase::kStream) {
    if (auto exchange = slots_.front().exchange.lock()) exchange->set_unsent(unsent_);
  }
  if (answer_held_.set(own_)) {
    host_.make_answer_room();
    if (state_ != State::kOpen) return;
  }
  if (unsent_ == 0 && slots_.empty() && last_) linger();
}

void HttpConnection::tick() {
  const HttpServerOptions& most = host_.options;
  std::int64_t waited = host_.now_ns - since_ns_;
  if (state_ == State::kClosed) return;
  if (state_ == State::kLingering) {
    if (waited > kLingerNs) close();
    return;
  }
  if (state_ == State::kHandshake) {
    if (waited > most.head_timeout_ns) cut(Cut::kSilent);
    return;
  }
  if (unsent_ > 0) {
    if (waited > most.reader_timeout_ns) cut(Cut::kSlowReader);
    return;
  }
  if (!slots_.empty()) return;  // the handler's time, not the peer's
  if (inside()) {
    if (!too_slow(waited)) return;
    host_.cut(Cut::kSlowRequest);
    return refuse(408, "the request took too long to arrive");
  }
  if (!asked_ && waited > most.head_timeout_ns) return cut(Cut::kSilent);
  if (waited > most.idle_timeout_ns) close();
}

// A head has its time, a body besides a rate.
bool HttpConnection::too_slow(std::int64_t waited_ns) const {
  const HttpServerOptions& most = host_.options;
  if (waited_ns > most.request_timeout_ns) return true;
  if (waited_ns <= most.head_timeout_ns) return false;
  if (!parser_.head_done()) return true;
  const std::int64_t due =
      (waited_ns - most.head_timeout_ns) / 1'000'000 * most.min_bytes_per_second / 1'000;
  return static_cast<std::int64_t>(arrived_) < due;
}

void HttpConnection::drain() {
  if (state_ == State::kClosed) return;
  if (state_ == State::kHandshake || (state_ == State::kOpen && slots_.empty() && unsent_ == 0)) {
    return close();
  }
  if (state_ != State::kOpen) return;
  last_ = true;
  for (Slot& slot : slots_) {
    bool stream = slot.phase == Phase::kStream ||
                  std::any_of(slot.pending.begin(), slot.pending.end(), [](const ServerEvent& e) {
                    return e.kind == ServerEvent::Kind::kBegin;
                  });
    if (!stream) continue;
    if (auto exchange = slot.exchange.lock()) exchange->lose();
    if (&slot == &slots_.front()) {
      send_end(slot);
    } else {
      slot.pending.emplace_back();
      slot.pending.back().kind = ServerEvent::Kind::kEnd;
    }
  }
  next_slots();
  flush();
}

// The last answer went out; a peer that still sends must be able to read it, and would not be if
// the kernel answered its bytes with a reset.
void HttpConnection::linger() {
  socket_.shut_write();
  lose_slots();
  state_ = State::kLingering;
  since_ns_ = host_.now_ns;
  left_ = {};
  count_request();
  readable_ = true;
  read();
}

void HttpConnection::lose_slots() {
  std::vector<Slot> slots = std::exchange(slots_, {});
  for (Slot& slot : slots) {
    if (auto exchange = slot.exchange.lock()) exchange->lose();
  }
}

void HttpConnection::close() {
  state_ = State::kClosed;
  left_ = {};
  count_request();
  answer_held_.set(0);
  lose_slots();
}

}  // namespace berth::serve
