#include "io/json.h"

#include <utility>
#include <vector>

#include "base/text.h"
#include "io/file.h"

namespace pantala::io {

namespace {

// Builds a document from the parser's events. The parser's own builder would keep the last of
// several equal keys, and with checks of depth and keys its time grows with the square of an
// object's size.
template <class Document>
class Builder : public nlohmann::json_sax<Document> {
 public:
  using Number = typename Document::number_integer_t;
  using Unsigned = typename Document::number_unsigned_t;
  using Float = typename Document::number_float_t;
  using Text = typename Document::string_t;
  using Binary = typename Document::binary_t;

  Builder(std::string_view file, int max_depth)
      : file_(file), max_depth_(static_cast<std::size_t>(max_depth)) {}
  Document take() { return std::move(root_); }

  bool null() override { return add(nullptr), true; }
  bool boolean(bool value) override { return add(value), true; }
  bool number_integer(Number value) override { return add(value), true; }
  bool number_unsigned(Unsigned value) override { return add(value), true; }
  bool number_float(Float value, const Text&) override { return add(value), true; }
  bool string(Text& value) override { return add(std::move(value)), true; }
  bool binary(Binary&) override { return false; }  // not part of JSON

  bool start_object(std::size_t) override { return open(Document::object()); }
  bool start_array(std::size_t) override { return open(Document::array()); }
  bool end_object() override { return open_.pop_back(), true; }
  bool end_array() override { return open_.pop_back(), true; }
  bool key(Text& name) override {
    check_depth();
    auto& object = open_.back()->template get_ref<typename Document::object_t&>();
    const auto [place, is_new] = object.emplace(name, nullptr);
    if (!is_new)
      throw ParseError(fmt::format("{}: the key {} appears twice", file_, in_quotes(name)));
    value_of_key_ = &place->second;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    if (dynamic_cast<const nlohmann::detail::parse_error*>(&error))
      throw ParseError(fmt::format("{}: byte {}: not valid JSON", file_, position));
    throw ParseError(fmt::format("{}: not valid JSON: {}", file_, error.what()));
  }

 private:
  void check_depth() const {
    if (open_.size() > max_depth_)
      throw ParseError(fmt::format("{}: nested deeper than {} levels", file_, max_depth_));
  }
  Document& add(Document value) {
    check_depth();
    if (open_.empty()) return root_ = std::move(value);
    if (open_.back()->is_object()) return *value_of_key_ = std::move(value);
    return open_.back()->emplace_back(std::move(value));
  }
  bool open(Document container) {
    open_.push_back(&add(std::move(container)));
    return true;
  }

  std::string_view file_;
  std::size_t max_depth_;
  Document root_;
  // Containers that have not ended; none of them moves, since only the innermost one grows.
  std::vector<Document*> open_;
  Document* value_of_key_ = nullptr;
};

}  // namespace

template <class Document>
Document parse_json(std::string_view text, std::string_view file, int max_depth) {
  Builder<Document> builder(file, max_depth);
  Document::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

template <class Document>
Document read_json(const std::filesystem::path& path, int max_depth) {
  return parse_json<Document>(read_file(path), path.string(), max_depth);
}

template Json parse_json(std::string_view, std::string_view, int);
template OrderedJson parse_json(std::string_view, std::string_view, int);
template Json read_json(const std::filesystem::path&, int);
template OrderedJson read_json(const std::filesystem::path&, int);

}  // namespace pantala::io
