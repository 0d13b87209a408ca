#include "net/tls.h"

#include <gtest/gtest.h>

#include <fstream>
#include <utility>

#include "support/hand_peer.h"
#include "support/memory_stream.h"
#include "support/sim_loop.h"
#include "support/temporary_folder.h"

namespace w5xde {
namespace {

constexpr std::int64_t kHour = 3600;

class TlsTest : public testing::Test {
 protected:
  void SetUp() override {
    make("certificate", "coordinator");
    make("other", "coordinator");
  }
  void make(const std::string& file, const std::string& name, const Validity& validity = {}) {
    ASSERT_TRUE(write_self_signed(folder_ / (file + ".pem"), folder_ / (file + ".key"), name, validity).ok());
  }
  Identity identity(const std::string& file) const {
    return Identity::open(folder_ / (file + ".pem"), folder_ / (file + ".key")).value();
  }
  TlsContext server(const std::string& file = "certificate", const std::string& authorities = {}) const {
    return TlsContext::server(identity(file), authorities.empty() ? "" : folder_ / authorities).value();
  }
  // A client with a key of its own that knows the server by its certificate.
  TlsContext pinned(const std::string& expected, const std::string& self = "other") const {
    return TlsContext::client(identity(self), identity(expected).fingerprint()).value();
  }
  TlsContext chained(const std::string& authorities, const std::string& name = "coordinator") const {
    return TlsContext::client(folder_ / authorities, name).value();
  }

  void connect(const TlsContext& client_context, const TlsContext& server_context) {
    auto [near, far] = make_memory_streams(loop_, 64 * 1024);
    client_ = client_context.wrap(std::move(near));
    server_ = server_context.wrap(std::move(far));
  }
  // What one end reads of five bytes that the other writes; or the first error that either end has.
  Result<std::string> carry(Stream& from, Stream& to) {
    std::string got(5, '\0');
    const iovec in{got.data(), got.size()};
    const iovec out{const_cast<char*>("hello"), 5};
    bool sent = false;
    for (int turn = 0; turn < 100; ++turn) {
      if (!sent) {
        auto written = from.write({&out, 1});
        if (!written) return std::move(written).error();
        sent = *written == 5;
      }
      auto read = to.read({&in, 1});
      if (!read) return std::move(read).error();
      if (*read == 5) return got;
    }
    return disconnected("no exchange");
  }
  // How the client's first exchange ends, both ways.
  Result<std::string> exchange(const TlsContext& client_context, const TlsContext& server_context) {
    connect(client_context, server_context);
    auto there = carry(*client_, *server_);
    return there.ok() ? carry(*server_, *client_) : std::move(there);
  }
  Result<std::string> exchange(const TlsContext& client_context) {
    return exchange(client_context, server());
  }
  void expect_refusal(const Result<std::string>& got, const std::string& part) {
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.error().kind, ErrorKind::incompatible);
    EXPECT_NE(got.error().message.find(part), std::string::npos) << got.error().message;
  }

  SimLoop loop_;
  TemporaryFolder folder_;
  std::unique_ptr<Stream> client_;
  std::unique_ptr<Stream> server_;
};

TEST_F(TlsTest, a_client_that_trusts_the_certificate_reads_the_server) {
  const auto got = exchange(chained("certificate.pem"));
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(*got, "hello");
  EXPECT_EQ(server_->peer_identity(), "") << "it has shown none";
}

TEST_F(TlsTest, a_certificate_of_somebody_else_is_refused_with_a_reason) {
  expect_refusal(exchange(chained("other.pem")), "certificate");
}

TEST_F(TlsTest, a_certificate_for_another_name_is_refused) {
  expect_refusal(exchange(chained("certificate.pem", "somebody-else")), "certificate");
}

TEST_F(TlsTest, both_ends_prove_their_keys) {
  const auto got = exchange(pinned("certificate"));
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(server_->peer_identity(), identity("other").name());
  EXPECT_EQ(client_->peer_identity(), identity("certificate").name());
}

TEST_F(TlsTest, nothing_is_known_of_a_peer_before_the_handshake_is_done) {
  connect(pinned("certificate"), server());
  for (const Stream* stream : {client_.get(), server_.get()}) {
    EXPECT_EQ(stream->peer_identity(), "");
    EXPECT_FALSE(stream->session_secret().has_value());
  }
}

TEST_F(TlsTest, both_ends_share_a_secret_that_no_other_session_has) {
  ASSERT_TRUE(exchange(pinned("certificate")).ok());
  const auto first = client_->session_secret();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first, server_->session_secret());
  ASSERT_TRUE(exchange(pinned("certificate")).ok());
  EXPECT_EQ(client_->session_secret(), server_->session_secret());
  EXPECT_NE(client_->session_secret(), first);
}

TEST_F(TlsTest, another_certificate_than_the_one_that_was_named_is_refused) {
  expect_refusal(exchange(pinned("other"), server("certificate")), "ask for a new invitation");
}

TEST_F(TlsTest, a_clock_that_is_wrong_does_not_matter_where_the_certificate_is_named) {
  make("early", "coordinator", {.begin_seconds = 5 * kHour, .end_seconds = 10 * kHour});
  make("late", "coordinator", {.begin_seconds = -10 * kHour, .end_seconds = -5 * kHour});
  for (const char* file : {"early", "late"}) {
    const auto got = exchange(pinned(file, file), server(file));
    EXPECT_TRUE(got.ok()) << file << ": " << got.error().message;
    expect_refusal(exchange(chained(std::string(file) + ".pem"), server(file)), "certificate");
  }
}

TEST_F(TlsTest, a_server_with_authorities_takes_only_clients_that_lead_to_one) {
  const TlsContext strict = server("certificate", "other.pem");
  const auto got = exchange(pinned("certificate", "other"), strict);
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(server_->peer_identity(), identity("other").name());
  make("third", "node");
  expect_refusal(exchange(pinned("certificate", "third"), strict), "TLS");
  expect_refusal(exchange(chained("certificate.pem"), strict), "certificate");
}

TEST_F(TlsTest, a_peer_that_speaks_no_tls_is_told_to_come_with_an_invitation) {
  auto [near, far] = make_memory_streams(loop_, 64 * 1024);
  auto stream = server().wrap(std::move(near));
  HandPeer plain(std::move(far));
  plain.say(FrameType::goodbye, Goodbye{});
  loop_.run_for(std::chrono::milliseconds(1));
  char byte = 0;
  const iovec in{&byte, 1};
  expect_refusal(
      [&]() -> Result<std::string> {
        auto read = stream->read({&in, 1});
        return read.ok() ? Result<std::string>("") : std::move(read).error();
      }(),
      "speaks without TLS; it must come with an invitation");
  loop_.run_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(plain.why().starts_with("incompatible: the other side left: this coordinator speaks TLS only"))
      << plain.why();
}

TEST_F(TlsTest, a_client_is_told_that_its_server_speaks_no_tls) {
  auto [near, far] = make_memory_streams(loop_, 64 * 1024);
  auto stream = pinned("certificate").wrap(std::move(near));
  HandPeer plain(std::move(far));
  plain.say(FrameType::ping, Heartbeat{1});
  loop_.run_for(std::chrono::milliseconds(1));
  char byte = 0;
  const iovec in{&byte, 1};
  const auto read = stream->read({&in, 1});
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().kind, ErrorKind::incompatible);
  EXPECT_NE(read.error().message.find("speaks without TLS"), std::string::npos) << read.error().message;
  EXPECT_TRUE(plain.why().starts_with("incompatible: the other side speaks TLS")) << plain.why();
}

TEST_F(TlsTest, what_is_wrong_with_the_first_bytes_is_said_also_if_they_were_there_before_it_began) {
  auto [near, far] = make_memory_streams(loop_, 64 * 1024);
  const std::string noise = "HTTP/1.1 400 Bad Request\r\n\r\n";
  const iovec out{const_cast<char*>(noise.data()), noise.size()};
  ASSERT_TRUE(far->write({&out, 1}).ok());
  auto stream = pinned("certificate").wrap(std::move(near));
  char byte = 0;
  const iovec in{&byte, 1};
  const auto read = stream->read({&in, 1});
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().kind, ErrorKind::incompatible);
  EXPECT_NE(read.error().message.find("wrong version number"), std::string::npos) << read.error().message;
}

TEST_F(TlsTest, a_certificate_that_is_refused_is_refused_for_a_reason_in_words) {
  expect_refusal(exchange(chained("certificate.pem", "somebody-else")), "hostname mismatch");
}

TEST_F(TlsTest, bytes_that_are_neither_are_refused) {
  auto [near, far] = make_memory_streams(loop_, 64 * 1024);
  auto stream = server().wrap(std::move(near));
  const std::string noise = "GET / HTTP/1.1\r\n\r\n";
  const iovec out{const_cast<char*>(noise.data()), noise.size()};
  ASSERT_TRUE(far->write({&out, 1}).ok());
  char byte = 0;
  const iovec in{&byte, 1};
  EXPECT_EQ(stream->read({&in, 1}).error().kind, ErrorKind::incompatible);
}

TEST_F(TlsTest, wrong_files_of_authorities_are_named) {
  std::ofstream(folder_ / "garbage.pem") << "not a certificate";
  EXPECT_NE(TlsContext::client(folder_ / "garbage.pem", "x").error().message.find("garbage.pem"),
            std::string::npos);
  EXPECT_NE(TlsContext::server(identity("other"), folder_ / "none.pem").error().message.find("none.pem"),
            std::string::npos);
  EXPECT_EQ(TlsContext::client(folder_ / "certificate.pem", "").error().kind, ErrorKind::invalid);
}

}  // namespace
}  // namespace w5xde
