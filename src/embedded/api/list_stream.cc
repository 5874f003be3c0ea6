// Lists: at once when they are small, else piece by piece at the reader's pace, so that neither the
// loop nor memory is taken by the whole of a large one.
#include <utility>

#include "embedded/api/server.h"

namespace berth::sim::api {

namespace {

constexpr std::size_t kPieceBytes = 256 * 1024;
constexpr std::size_t kPieceItems = 250;       // tables, metadata and YAML are parsed for each
constexpr std::size_t kPlainItems = 2'000;     // the rest is copied
constexpr std::size_t kMaxWaiting = 1u << 20;  // bytes that the reader has not taken
constexpr std::int64_t kLookAgain = 5'000'000;
constexpr int kMostLooks = 12'000;  // a minute without a byte taken

struct ListStream {
  RequestPtr request;
  std::vector<ObjectPtr> objects;
  ListAnswer meta;
  std::size_t next = 0;
  std::size_t waiting = 0;  // at the last look
  int looks = 0;
};

bool all_read(const ListStream& stream) { return stream.next == stream.objects.size(); }

// The next piece: at least one object, and no more than its bounds.
void append_piece(ListStream& stream, std::int64_t now_ns, std::string& out) {
  const Request& request = *stream.request;
  const bool plain = request.shape == Shape::kObject && !request.yaml &&
                     request.type->kind == request.type->shelf->kind;
  const std::size_t end =
      std::min(stream.objects.size(), stream.next + (plain ? kPlainItems : kPieceItems));
  std::size_t bytes = 0;  // of what is read for it, which tables print little of
  while (stream.next < end && bytes < kPieceBytes) {
    const ObjectPtr object = std::exchange(stream.objects[stream.next], nullptr);
    bytes += object->json.size();
    append_list_item(request, *object, stream.next == 0, now_ns, out);
    ++stream.next;
  }
}

void send_piece(Server& server, const std::shared_ptr<ListStream>& stream) {
  serve::Exchange& exchange = *stream->request->exchange;
  if (exchange.gone()) return;
  const std::size_t waiting = exchange.backlog();
  if (waiting > kMaxWaiting) {
    stream->looks = waiting < std::exchange(stream->waiting, waiting) ? 0 : stream->looks + 1;
    if (stream->looks > kMostLooks) return;  // dropped, which cuts the connection
    server.later_by(kLookAgain, [&server, stream] { send_piece(server, stream); });
    return;
  }
  std::string piece;
  append_piece(*stream, server.loop.wall().now_ns(), piece);
  if (all_read(*stream)) piece += list_tail(*stream->request, stream->meta);
  exchange.write(std::make_shared<const std::string>(std::move(piece)));
  if (all_read(*stream)) return exchange.end();
  server.later([&server, stream] { send_piece(server, stream); });
}

}  // namespace

void Server::answer_list(const RequestPtr& request, std::vector<ObjectPtr> objects,
                         const ListAnswer& meta) {
  auto stream = std::make_shared<ListStream>();
  stream->request = request;
  stream->objects = std::move(objects);
  stream->meta = meta;
  if (request->yaml && stream->objects.empty()) {  // "items: []" is one word
    Request plain = *request;
    plain.yaml = false;
    return request->answer(200, list_head(plain, meta) + list_tail(plain, meta));
  }
  std::string first = list_head(*request, meta);
  append_piece(*stream, loop.wall().now_ns(), first);
  if (all_read(*stream)) {
    return request->answer_whole(200, first + list_tail(*request, meta));
  }
  if (!request->begin(200)) return;
  request->exchange->write(std::make_shared<const std::string>(std::move(first)));
  later([this, stream] { send_piece(*this, stream); });
}

}  // namespace berth::sim::api
