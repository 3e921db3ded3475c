#include "monitor/records.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "io/json.h"

namespace pantala::monitor {

namespace {

void append(std::vector<Field>& fields, std::string_view name, FieldValue value) {
  fields.push_back({std::string(name), value});
}
template <class T>
void append(std::vector<Field>& fields, std::string_view name, const std::optional<T>& value) {
  if (value) append(fields, name, FieldValue(*value));
}

template <class Record>
std::vector<Field> numbers_of(const Record& record) {
  std::vector<Field> fields;
  each_number(record,
              [&](std::string_view name, const auto& value) { append(fields, name, value); });
  return fields;
}

// The length of the well-formed UTF-8 character at the beginning of the text, or 0.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t k = 1; k < length; ++k)
    if ((byte(k) & 0xc0) != 0x80) return 0;
  // Too long a form, a surrogate, or beyond the last character.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
      (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f))
    return 0;
  // U+0080 to U+009f are control characters too.
  if (first == 0xc2 && byte(1) < 0xa0) return 0;
  return length;
}

}  // namespace

std::vector<Field> fields_of(const StepRecord& record) { return numbers_of(record); }

std::vector<Field> fields_of(const EpochRecord& record) {
  std::vector<Field> fields = numbers_of(record);
  for (const auto& [name, value] : record.metrics)
    append(fields, fmt::format("{}{}", kValidationPrefix, name), FieldValue(value));
  return fields;
}

bool is_place(std::string_view field) {
  return field == "epoch" || field == "step" || field == "steps" || field == "global_step";
}

std::string number_text(const FieldValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *whole);
  const double number = std::get<double>(value);
  if (number == 0 && std::signbit(number)) return "-0.0";  // "-0" would be read as a whole number
  return exact(number);
}

std::string json_members(const std::vector<Field>& fields) {
  std::string text;
  for (const Field& field : fields) {
    const auto* number = std::get_if<double>(&field.value);
    const char* quote = number && !std::isfinite(*number) ? "\"" : "";
    text +=
        fmt::format("{}{}:{}{}{}", text.empty() ? "" : ",", io::Json(printable(field.name)).dump(),
                    quote, number_text(field.value), quote);
  }
  return text;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = character_bytes(text);
    if (length == 0 || static_cast<unsigned char>(text[0]) < 0x20 || text[0] == '\x7f') {
      out += '?';
      text.remove_prefix(1);
    } else {
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return out;
}

}  // namespace pantala::monitor
