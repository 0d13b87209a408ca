#include "support/stream_pairs.h"

#include <cstdio>
#include <cstdlib>
#include <ostream>

#include "net/asio_loop.h"
#include "net/tcp.h"
#include "net/tls.h"
#include "support/memory_stream.h"
#include "support/sim_loop.h"
#include "support/temporary_folder.h"

namespace w5xde {

namespace {

template <class T>
T must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.error().to_string().c_str());
    std::abort();
  }
  return std::move(result).value();
}

class TcpPair final : public StreamPair {
 public:
  TcpPair() : random_(1) {
    auto listener = must(listen_tcp(loop_, {"127.0.0.1", 0}, {},
                                    [this](std::unique_ptr<Stream> stream) { far = std::move(stream); }));
    ConnectOptions options;
    options.address = listener->address();
    connect_tcp(loop_, options, random_,
                [this](Result<std::unique_ptr<Stream>> stream) { near = must(std::move(stream)); });
    loop_.run_until([this] { return near && far; });
  }
  // The streams must go before their loop.
  ~TcpPair() override {
    near.reset();
    far.reset();
  }

  bool run_until(const std::function<bool()>& condition) override {
    bool late = false;
    const auto timer = loop_.after(std::chrono::seconds(60), [&] { late = true; });
    loop_.run_until([&] { return late || condition(); });
    loop_.cancel(timer);
    return !late;
  }
  Loop& loop() override { return loop_; }

 private:
  AsioLoop loop_;
  Random random_;
};

class MemoryPair final : public StreamPair {
 public:
  MemoryPair() { std::tie(near, far) = make_memory_streams(loop_, 64 * 1024); }
  ~MemoryPair() override {
    near.reset();
    far.reset();
  }

  bool run_until(const std::function<bool()>& condition) override {
    for (int turn = 0; turn < 100'000 && !condition(); ++turn) loop_.run_for(std::chrono::milliseconds(1));
    return condition();
  }
  Loop& loop() override { return loop_; }

 private:
  SimLoop loop_;
};

// Wraps both ends of another pair.
template <class Inner>
class TlsPair final : public StreamPair {
 public:
  TlsPair() {
    const auto certificate = folder_ / "certificate.pem";
    const auto key = folder_ / "key.pem";
    if (!write_self_signed(certificate, key, "coordinator").ok()) std::abort();
    near = must(TlsContext::client(certificate, "coordinator")).wrap(std::move(inner_.near));
    far = must(TlsContext::server(must(Identity::open(certificate, key)))).wrap(std::move(inner_.far));
  }
  ~TlsPair() override {
    near.reset();
    far.reset();
  }

  bool run_until(const std::function<bool()>& condition) override { return inner_.run_until(condition); }
  Loop& loop() override { return inner_.loop(); }

 private:
  TemporaryFolder folder_;
  Inner inner_;
};

}  // namespace

const std::vector<StreamKind>& all_stream_kinds() {
  static const std::vector<StreamKind> kKinds = {
      {"tcp", [] { return std::make_unique<TcpPair>(); }},
      {"memory", [] { return std::make_unique<MemoryPair>(); }},
      {"tls_over_tcp", [] { return std::make_unique<TlsPair<TcpPair>>(); }},
      {"tls_over_memory", [] { return std::make_unique<TlsPair<MemoryPair>>(); }},
  };
  return kKinds;
}

void PrintTo(const StreamKind& kind, std::ostream* out) {
  *out << kind.name;
}

}  // namespace w5xde
