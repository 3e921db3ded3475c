// SHA-256 (FIPS 180-4): keys and checksums of files, where an accident must not make two different
// things equal. Computed by libcrypto.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;  // libcrypto's EVP_MD_CTX

namespace pantala {

using Digest = std::array<std::uint8_t, 32>;

// Of bytes that come in parts.
class Sha256 {
 public:
  Sha256();
  void add(std::string_view bytes);
  Digest finish();  // once

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

Digest sha256(std::string_view bytes);
std::string hex(const Digest& digest);

}  // namespace pantala
