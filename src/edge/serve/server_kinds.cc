#include "edge/serve/server_kinds.h"

namespace berth::serve {
namespace {

constexpr std::int64_t kKindSecond = 1'000'000'000;
constexpr std::size_t kKindKib = 1'024, kKindMib = 1'024 * kKindKib;

// Nobody who asks these has anything to send but a head.
HttpServerOptions bodiless_server() {
  HttpServerOptions out;
  out.max_head_bytes = 16 * kKindKib;
  out.max_body_bytes = 0;
  out.max_request_bytes = 1 * kKindMib;
  out.max_in_work = 1;
  out.max_unsent_bytes = 64 * kKindKib;
  out.head_timeout_ns = 5 * kKindSecond;
  out.request_timeout_ns = 5 * kKindSecond;
  out.idle_timeout_ns = 120 * kKindSecond;
  out.reader_timeout_ns = 10 * kKindSecond;
  return out;
}

}  // namespace

HttpServerOptions health_server() {
  HttpServerOptions out = bodiless_server();
  out.name = "health";
  out.max_connections = 32;
  out.max_connections_per_peer = 16;
  out.descriptor_percent = 6;
  out.spare_descriptors = 4;
  out.max_answer_bytes = 1 * kKindMib;
  out.head_timeout_ns = out.request_timeout_ns = 2 * kKindSecond;
  out.idle_timeout_ns = 30 * kKindSecond;
  return out;
}

HttpServerOptions metrics_server() {
  HttpServerOptions out = bodiless_server();
  out.name = "metrics";
  out.max_connections = 64;
  out.max_connections_per_peer = 32;
  out.descriptor_percent = 6;
  out.spare_descriptors = 2;
  out.max_answer_bytes = 16 * kKindMib;
  return out;
}

HttpServerOptions webhook_server() {
  HttpServerOptions out;
  out.name = "webhook";
  out.max_connections = 512;
  out.max_connections_per_peer = 256;
  out.descriptor_percent = 16;
  out.max_head_bytes = 32 * kKindKib;
  out.max_body_bytes = kMostReviewBody;
  out.max_request_bytes = kMostReviewBody + 2 * kKindMib;
  out.max_answer_bytes = 34 * kKindMib;
  out.max_in_work = 4;
  out.max_unsent_bytes = 64 * kKindKib;
  out.head_timeout_ns = 5 * kKindSecond;
  out.min_bytes_per_second = static_cast<std::int64_t>(64 * kKindKib);
  out.reader_timeout_ns = 30 * kKindSecond;
  return out;
}

HttpServerOptions page_server() {
  HttpServerOptions out = bodiless_server();
  out.name = "page";
  out.max_connections = 512;
  out.max_connections_per_peer = 256;
  out.descriptor_percent = 16;
  out.max_head_bytes = 64 * kKindKib;  // tokens
  out.max_request_bytes = 16 * kKindMib;
  out.max_answer_bytes = 64 * kKindMib;
  out.max_in_work = 8;
  out.reader_timeout_ns = 30 * kKindSecond;
  return out;
}

HttpServerOptions api_server() {
  HttpServerOptions out;
  out.name = "api";
  out.descriptor_percent = 75;
  return out;
}

}  // namespace berth::serve
