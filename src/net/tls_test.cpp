#include "net/tls.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/memory_stream.h"
#include "support/sim_loop.h"
#include "support/temporary_folder.h"

namespace w5xde {
namespace {

class TlsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_self_signed(folder_ / "certificate.pem", folder_ / "key.pem", "coordinator").ok());
    ASSERT_TRUE(write_self_signed(folder_ / "other.pem", folder_ / "other_key.pem", "coordinator").ok());
  }

  // How the client's first exchange ends: what it reads, or the error.
  Result<std::string> exchange(const TlsContext& client_context) {
    auto [near, far] = make_memory_streams(loop_, 64 * 1024);
    auto client = client_context.wrap(std::move(near));
    auto server = TlsContext::server(folder_ / "certificate.pem", folder_ / "key.pem")->wrap(std::move(far));
    std::string got(5, '\0');
    const iovec in{got.data(), got.size()};
    const iovec out{const_cast<char*>("hello"), 5};
    bool sent = false;
    for (int turn = 0; turn < 100; ++turn) {
      if (!sent) {
        auto written = server->write({&out, 1});
        sent = !written.ok() || *written == 5;
      }
      auto read = client->read({&in, 1});
      if (!read) return std::move(read).error();
      if (*read == 5) return got;
    }
    return disconnected("no exchange");
  }

  SimLoop loop_;
  TemporaryFolder folder_;
};

TEST_F(TlsTest, a_client_that_trusts_the_certificate_reads_the_server) {
  const auto got = exchange(TlsContext::client(folder_ / "certificate.pem", "coordinator").value());
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(*got, "hello");
}

TEST_F(TlsTest, a_certificate_of_somebody_else_is_refused_with_a_reason) {
  const auto got = exchange(TlsContext::client(folder_ / "other.pem", "coordinator").value());
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().kind, ErrorKind::incompatible);
  EXPECT_NE(got.error().message.find("certificate"), std::string::npos) << got.error().message;
}

TEST_F(TlsTest, a_certificate_for_another_name_is_refused) {
  const auto got = exchange(TlsContext::client(folder_ / "certificate.pem", "somebody-else").value());
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().kind, ErrorKind::incompatible);
}

TEST_F(TlsTest, a_peer_that_speaks_no_tls_is_refused) {
  auto [near, far] = make_memory_streams(loop_, 64 * 1024);
  auto server = TlsContext::server(folder_ / "certificate.pem", folder_ / "key.pem")->wrap(std::move(near));
  const std::string plain = "W5XD plain frames, no TLS at all";
  const iovec out{const_cast<char*>(plain.data()), plain.size()};
  ASSERT_TRUE(far->write({&out, 1}).ok());
  char byte = 0;
  const iovec in{&byte, 1};
  EXPECT_EQ(server->read({&in, 1}).error().kind, ErrorKind::incompatible);
}

TEST_F(TlsTest, missing_or_wrong_files_are_named) {
  std::ofstream(folder_ / "garbage.pem") << "not a certificate";
  EXPECT_NE(TlsContext::server(folder_ / "none.pem", folder_ / "key.pem").error().message.find("none.pem"),
            std::string::npos);
  EXPECT_NE(
      TlsContext::server(folder_ / "certificate.pem", folder_ / "other_key.pem").error().message.find("key"),
      std::string::npos);
  EXPECT_NE(TlsContext::client(folder_ / "garbage.pem", "x").error().message.find("garbage.pem"),
            std::string::npos);
  EXPECT_EQ(TlsContext::client(folder_ / "certificate.pem", "").error().kind, ErrorKind::invalid);
}

TEST_F(TlsTest, a_private_key_is_readable_by_its_owner_alone) {
  const auto mode = std::filesystem::status(folder_ / "key.pem").permissions();
  EXPECT_EQ(mode, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

}  // namespace
}  // namespace w5xde
