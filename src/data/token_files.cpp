// Files of tokens: windows of them are items, the next tokens are their labels.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/hash.h"
#include "base/text.h"
#include "data/fingerprint.h"
#include "io/mapped_file.h"
#include "pantala/data.h"
#include "pantala/error.h"

namespace pantala::data {

namespace {

constexpr std::int64_t kMaxSequence = 1 << 24;

std::int64_t token_bytes(TokenType type) {
  return type == TokenType::u8 ? 1 : type == TokenType::u16 ? 2 : 4;
}

template <class Stored>
std::int64_t load(const std::byte* from) {
  static_assert(std::endian::native == std::endian::little);
  Stored token;
  std::memcpy(&token, from, sizeof token);
  return token;
}

// A mapped file as a row of tokens.
class TokenFile {
 public:
  TokenFile(const std::filesystem::path& path, TokenType type)
      : file_(path), type_(type), bytes_(token_bytes(type)) {
    if (file_.bytes().size() % static_cast<std::size_t>(bytes_) != 0)
      throw ParseError(fmt::format("{}: {} bytes are no whole number of tokens of {} bytes",
                                   path.string(), file_.bytes().size(), bytes_));
  }

  std::string name() const { return file_.file().path().string(); }
  std::int64_t count() const { return static_cast<std::int64_t>(file_.bytes().size()) / bytes_; }
  // Tokens [first, first + out.size()), which are there.
  void read(std::int64_t first, std::span<std::int64_t> out) const {
    const std::byte* from = file_.bytes().data() + first * bytes_;
    for (std::int64_t& token : out) {
      token = type_ == TokenType::u8    ? load<std::uint8_t>(from)
              : type_ == TokenType::u16 ? load<std::uint16_t>(from)
                                        : load<std::int32_t>(from);
      from += bytes_;
    }
  }
  void check_size() const { file_.check_size(); }

  void check_vocabulary(std::int64_t vocabulary) const {
    constexpr std::int64_t kChunk = 1 << 16;
    std::vector<std::int64_t> tokens;
    for (std::int64_t first = 0; first < count(); first += kChunk) {
      tokens.resize(static_cast<std::size_t>(std::min(kChunk, count() - first)));
      read(first, tokens);
      for (std::size_t k = 0; k < tokens.size(); ++k)
        if (tokens[k] < 0 || tokens[k] >= vocabulary)
          throw ValueError(fmt::format("{}: token {} is {}, outside of the vocabulary of {}",
                                       name(), first + static_cast<std::int64_t>(k), tokens[k],
                                       vocabulary));
    }
  }

  // Of the tokens [first, first + count).
  std::uint64_t hash(std::int64_t first, std::int64_t count) const {
    constexpr std::int64_t kChunk = 1 << 16;
    std::uint64_t hash = kHashSeed;
    for (const std::int64_t end = first + count; first < end; first += kChunk) {
      std::vector<std::int64_t> tokens(static_cast<std::size_t>(std::min(kChunk, end - first)));
      read(first, tokens);
      hash = hash_array({.shape = {std::ssize(tokens)}, .values = std::move(tokens)}, hash);
    }
    return hash;
  }

 private:
  const io::MappedFile file_;
  const TokenType type_;
  const std::int64_t bytes_;
};

// A part of a file, in windows.
struct Windows {
  std::int64_t first = 0, tokens = 0;  // of the part
  std::int64_t sequence = 0, stride = 0;

  std::int64_t count() const {
    return tokens <= sequence ? 0 : (tokens - sequence - 1) / stride + 1;
  }
};

class TokenSource : public ItemSource {
 public:
  // `shift`: 0 for the items, 1 for their labels.
  TokenSource(std::shared_ptr<const TokenFile> file, const Windows& windows, std::int64_t shift)
      : file_(std::move(file)), windows_(windows), shift_(shift) {}

  std::int64_t items() const override { return windows_.count(); }
  ItemForm form() const override { return {i64, {windows_.sequence}, false}; }
  Array item(std::int64_t number) const override {
    file_->check_size();
    std::vector<std::int64_t> tokens(static_cast<std::size_t>(windows_.sequence));
    file_->read(first_of(number), tokens);
    return {.shape = {windows_.sequence}, .values = std::move(tokens)};
  }
  std::string item_name(std::int64_t number) const override {
    return fmt::format("tokens {} to {}", first_of(number),
                       first_of(number) + windows_.sequence - 1);
  }
  std::uint64_t hash() const override {
    std::uint64_t hash = file_->hash(windows_.first, windows_.tokens);
    for (const std::int64_t number : {windows_.sequence, windows_.stride, shift_})
      hash = hash_combine(hash, static_cast<std::uint64_t>(number));
    return hash;
  }

 private:
  std::int64_t first_of(std::int64_t number) const {
    return windows_.first + number * windows_.stride + shift_;
  }

  const std::shared_ptr<const TokenFile> file_;
  const Windows windows_;
  const std::int64_t shift_;
};

std::shared_ptr<const TokenFile> open_tokens(const std::filesystem::path& path,
                                             const TokenOptions& options) {
  if (options.sequence < 1 || options.sequence > kMaxSequence)
    throw TypeError(
        fmt::format("tokens: a sequence of {}; expected 1 to {}", options.sequence, kMaxSequence));
  if (options.stride < 0 || options.stride > kMaxSequence)
    throw TypeError(fmt::format("tokens: a stride of {}; expected 1 to {}, or 0 for the sequence",
                                options.stride, kMaxSequence));
  if (options.vocabulary < 0)
    throw TypeError(fmt::format("tokens: a vocabulary of {}", options.vocabulary));
  auto file = std::make_shared<const TokenFile>(path, options.type);
  // A byte lies in any vocabulary that has 256.
  const bool any = options.type == TokenType::u8 && options.vocabulary >= 256;
  if (options.vocabulary > 0 && !any) file->check_vocabulary(options.vocabulary);
  return file;
}

Dataset windows_of(const std::shared_ptr<const TokenFile>& file, const TokenOptions& options,
                   std::int64_t first, std::int64_t tokens, const std::string& what) {
  const Windows windows{.first = first,
                        .tokens = tokens,
                        .sequence = options.sequence,
                        .stride = options.stride > 0 ? options.stride : options.sequence};
  if (windows.count() == 0)
    throw TypeError(fmt::format("{}{}: has {}; a sequence of {} needs {}", file->name(), what,
                                counted(static_cast<std::size_t>(tokens), "token"),
                                options.sequence, options.sequence + 1));
  return make_dataset(std::make_shared<const TokenSource>(file, windows, 0),
                      std::make_shared<const TokenSource>(file, windows, 1), file->name() + what);
}

}  // namespace

Dataset read_tokens(const std::filesystem::path& path, const TokenOptions& options) {
  const auto file = open_tokens(path, options);
  return windows_of(file, options, 0, file->count(), "");
}

TrainTest read_tokens(const std::filesystem::path& path, const TokenOptions& options,
                      double share) {
  if (!(share > 0 && share < 1))
    throw TypeError(fmt::format(
        "tokens: a share of {} for the test set; expected one above 0 and below 1", exact(share)));
  const auto file = open_tokens(path, options);
  const auto last =
      static_cast<std::int64_t>(std::llround(share * static_cast<double>(file->count())));
  const std::int64_t first = file->count() - last;
  return {.train = windows_of(file, options, 0, first, " (train)"),
          .test = windows_of(file, options, first, last, " (test)")};
}

}  // namespace pantala::data
