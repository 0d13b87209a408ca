#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "net/stream.h"
#include "w5xde/result.h"

struct ssl_ctx_st;

namespace w5xde {

// Who a server is, or whom a client trusts: a TLS 1.3 configuration, shared by many streams.
class TlsContext {
 public:
  // PEM files: the certificate (chain) and its private key.
  static Result<TlsContext> server(const std::filesystem::path& certificate,
                                   const std::filesystem::path& key);
  // PEM file of the certificates that a server's must lead back to, and the name that it must bear.
  static Result<TlsContext> client(const std::filesystem::path& authorities, std::string server_name);

  // TLS over another stream. The handshake runs with the first reads and writes; a certificate that does not
  // fit makes them fail.
  std::unique_ptr<Stream> wrap(std::unique_ptr<Stream> stream) const;

 private:
  TlsContext(std::shared_ptr<ssl_ctx_st> context, std::string server_name)
      : context_(std::move(context)), server_name_(std::move(server_name)) {}

  std::shared_ptr<ssl_ctx_st> context_;
  std::string server_name_;  // empty for a server
};

// Writes a new key and a certificate that it signs itself, valid for these names, for ten years.
Status write_self_signed(const std::filesystem::path& certificate, const std::filesystem::path& key,
                         const std::string& server_name);

}  // namespace w5xde
