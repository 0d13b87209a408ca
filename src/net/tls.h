#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "net/crypto.h"
#include "net/identity.h"
#include "net/stream.h"
#include "w5xde/result.h"

struct ssl_ctx_st;

namespace w5xde {

// Who a side is, and whom it trusts: a TLS 1.3 configuration, shared by many streams.
class TlsContext {
 public:
  // A server asks who its clients are. Each may show a certificate of any kind, because the handshake proves
  // only that it has the key: who may come in is decided by Stream::peer_identity(). With `authorities`, a
  // PEM file, only a certificate that leads back to one of those is taken, and one must be shown.
  static Result<TlsContext> server(const Identity& self, const std::filesystem::path& authorities = {});

  // A client that knows its server by the certificate, and nothing else: names and dates do not matter, so
  // clocks may be wrong.
  static Result<TlsContext> client(const Identity& self, const Digest& server_fingerprint);
  // A client whose server must have a certificate that leads back to one of `authorities`, a PEM file, and
  // bears the name. It shows who it is, if it is given that.
  static Result<TlsContext> client(const std::filesystem::path& authorities, std::string server_name,
                                   const Identity* self = nullptr);

  // TLS over another stream. The handshake runs with the first reads and writes; a certificate that does not
  // fit makes them fail.
  std::unique_ptr<Stream> wrap(std::unique_ptr<Stream> stream) const;

 private:
  enum class Side { server, client };

  TlsContext(Side side, std::shared_ptr<ssl_ctx_st> context) : side_(side), context_(std::move(context)) {}

  Side side_;
  std::shared_ptr<ssl_ctx_st> context_;
  std::string server_name_;                   // that a client insists on; empty: it does not
  std::optional<Digest> server_fingerprint_;  // likewise
};

}  // namespace w5xde
