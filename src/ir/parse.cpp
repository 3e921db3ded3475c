// The parser of the text form. Attribute values are read by the kind of the op's field, so that -0,
// 1 and 1.0 mean what the field says.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <map>

#include "base/text.h"
#include "ir/graph_data.h"
#include "ir/init_kinds.h"
#include "ir/lexer.h"
#include "ir/text_form.h"
#include "pantala/error.h"

namespace pantala::ir {

namespace {

using Kind = Token::Kind;

class Parser {
 public:
  Parser(std::string_view text, std::string_view file, const OpLookup& find_op,
         std::span<const std::string> op_names)
      : lexer_(text, file),
        file_(file),
        find_op_(find_op),
        op_names_(op_names),
        data_(graph_.data()) {}

  Graph run() {
    if (lexer_.peek().kind != Kind::word || lexer_.peek().text != "graph")
      lexer_.fail_expected("'graph'");
    lexer_.next();
    lexer_.expect("{");
    while (!lexer_.accept("}")) statement();
    if (lexer_.peek().kind != Kind::end) lexer_.fail_expected("the end of the text");
    return std::move(graph_);
  }

 private:
  Provenance place(const Token& token) const {
    return {base_name(file_), static_cast<std::uint32_t>(token.line), {}};
  }

  void statement() {
    const Token& token = lexer_.peek();
    if (token.kind == Kind::value) return node();
    if (token.kind == Kind::word && token.text == "output") return output();
    if (token.kind == Kind::word && token.text == "update") return update();
    lexer_.fail_expected("a node, 'output', 'update' or '}'");
  }

  void node() {
    const Token name = lexer_.next();
    if (name.text.empty()) lexer_.fail(name, "a value needs a name after %");
    if (values_.contains(name.text))
      lexer_.fail(name, fmt::format("%{} is defined twice", shown(name.text)));
    lexer_.expect("=");
    const Token word = lexer_.expect(Kind::word, "the name of an op");
    const OpDef* op = find_op_(word.text);
    if (op == nullptr)
      lexer_.fail(word, fmt::format("there is no op '{}'{}", shown(word.text),
                                    did_you_mean(word.text, op_names_)));
    const std::vector<Tensor> inputs = arguments();
    std::vector<Tensor> results;
    const AttrValues attrs = attributes(*op, word);
    results = data_->append(*op, inputs, attrs, place(word));
    if (lexer_.accept(":")) check_types(name, results);
    values_[name.text] = std::move(results);
  }

  std::vector<Tensor> arguments() {
    std::vector<Tensor> inputs;
    if (!lexer_.accept("(")) return inputs;
    if (lexer_.accept(")")) return inputs;
    do inputs.push_back(value());
    while (lexer_.accept(","));
    lexer_.expect(")");
    return inputs;
  }

  Tensor value() {
    const Token token = lexer_.expect(Kind::value, "a value such as %0");
    const auto it = values_.find(token.text);
    if (it == values_.end())
      lexer_.fail(token, fmt::format("%{} is not defined before its use", shown(token.text)));
    std::int64_t index = 0;
    if (lexer_.accept(":")) index = integer();
    if (index < 0 || index >= std::ssize(it->second))
      lexer_.fail(token, fmt::format("%{} has no result {}", shown(token.text), index));
    return it->second[index];
  }

  AttrValues attributes(const OpDef& op, const Token& where) {
    NamedAttrs given;
    if (lexer_.accept("{") && !lexer_.accept("}")) {
      do {
        const Token name = lexer_.expect(Kind::word, "the name of an attribute");
        lexer_.expect("=");
        const std::optional<std::size_t> k = op.find_attr(name.text);
        if (!k) unknown_attribute(op, name);
        given.emplace_back(name.text, attribute(op.attrs[*k].default_value));
      } while (lexer_.accept(","));
      lexer_.expect("}");
    }
    try {
      return bind_attributes(op, given);
    } catch (const TypeError& error) { throw_type_error(op.name, place(where), error.what()); }
  }

  [[noreturn]] void unknown_attribute(const OpDef& op, const Token& name) {
    std::vector<std::string> names;
    for (const AttrSpec& spec : op.attrs) names.push_back(spec.name);
    lexer_.fail(name, fmt::format("{} has no attribute '{}'{}", op.name, shown(name.text),
                                  did_you_mean(name.text, names)));
  }

  AttrValue attribute(const AttrValue& kind) {
    if (std::holds_alternative<bool>(kind)) return boolean_value();
    if (std::holds_alternative<std::int64_t>(kind)) return integer();
    if (std::holds_alternative<double>(kind)) return real();
    if (std::holds_alternative<std::string>(kind))
      return lexer_.expect(Kind::string, "a string").text;
    if (std::holds_alternative<Ints>(kind)) return ints();
    if (std::holds_alternative<DType>(kind)) return dtype();
    if (std::holds_alternative<Initializer>(kind)) return initializer();
    return std::make_shared<const Literal>(literal());
  }

  bool boolean_value() {
    const Token& token = lexer_.peek();
    if (token.kind != Kind::word || (token.text != "true" && token.text != "false"))
      lexer_.fail_expected("true or false");
    return lexer_.next().text == "true";
  }

  std::int64_t integer() {
    const Token token = lexer_.expect(Kind::number, "an integer");
    std::int64_t result = 0;
    const char* end = token.text.data() + token.text.size();
    const auto [stop, error] = std::from_chars(token.text.data(), end, result);
    if (error != std::errc{} || stop != end)
      lexer_.fail(token, fmt::format("'{}' is not a 64-bit integer", shown(token.text)));
    return result;
  }

  double real() {
    if (lexer_.peek().kind != Kind::number && lexer_.peek().kind != Kind::word)
      lexer_.fail_expected("a number");
    const Token token = lexer_.next();
    if (token.text == "inf") return INFINITY;
    if (token.text == "-inf") return -INFINITY;
    if (token.text == "nan") return NAN;
    double result = 0;
    const char* end = token.text.data() + token.text.size();
    const auto [stop, error] = std::from_chars(token.text.data(), end, result);
    if (error != std::errc{} || stop != end)
      lexer_.fail(token, fmt::format("'{}' is not a number", shown(token.text)));
    return result;
  }

  Ints ints() {
    Ints list;
    lexer_.expect("[");
    if (lexer_.accept("]")) return list;
    do list.push_back(integer());
    while (lexer_.accept(","));
    lexer_.expect("]");
    return list;
  }

  DType dtype() {
    const Token token = lexer_.expect(Kind::word, "a dtype");
    const std::optional<DType> found = parse_dtype(token.text);
    if (!found)
      lexer_.fail(
          token, fmt::format(
                     "there is no dtype '{}'; known are f32, f64, f16, bf16, i32, i64, u8 and bool",
                     shown(token.text)));
    return *found;
  }

  Type type() {
    const Token at = lexer_.peek();
    const DType element = dtype();
    const Ints sizes = ints();
    try {
      return {element, Shape(sizes)};
    } catch (const TypeError& error) { lexer_.fail(at, error.what()); }
  }

  Literal literal() {
    const Token at = lexer_.peek();
    const Type t = type();
    std::vector<double> floats;
    Ints integers;
    if (is_float(t.dtype)) {
      lexer_.expect("[");
      if (!lexer_.accept("]")) {
        do floats.push_back(real());
        while (lexer_.accept(","));
        lexer_.expect("]");
      }
    } else {
      integers = ints();
      for (const std::int64_t value : integers)
        if (wrap_to(t.dtype, value) != value)
          lexer_.fail(at, fmt::format("{} cannot hold {}", dtype_name(t.dtype), value));
    }
    try {
      return is_float(t.dtype) ? Literal::floats(t.shape, std::move(floats), t.dtype)
                               : Literal::ints(t.shape, std::move(integers), t.dtype);
    } catch (const TypeError& error) { lexer_.fail(at, error.what()); }
  }

  Initializer initializer() {
    const Token name = lexer_.expect(Kind::word, "an initialiser");
    for (const init::KindInfo& info : init::kinds()) {
      if (info.name != name.text) continue;
      Initializer result;
      result.kind = info.kind;
      if (info.kind == Initializer::Kind::data) {
        lexer_.expect("(");
        result.data = std::make_shared<const Literal>(literal());
        lexer_.expect(")");
        return result;
      }
      double* const all[] = {&result.a, &result.b, &result.low, &result.high};
      for (int k = 0; k < info.arguments; ++k) {
        lexer_.expect(k == 0 ? "(" : ",");
        *all[k] = real();
      }
      if (info.arguments > 0) lexer_.expect(")");
      return result;
    }
    std::vector<std::string_view> known;
    for (const init::KindInfo& info : init::kinds()) known.push_back(info.name);
    lexer_.fail(name, fmt::format("there is no initialiser '{}'; known are {}", shown(name.text),
                                  fmt::join(known, ", ")));
  }

  void check_types(const Token& name, const std::vector<Tensor>& results) {
    std::size_t k = 0;
    do {
      const Token at = lexer_.peek();
      const Type stated = type();
      if (k >= results.size())
        lexer_.fail(at, fmt::format("%{} has {}, but more types are stated", name.text,
                                    counted(results.size(), "result")));
      if (stated != results[k].type())
        lexer_.fail(
            at, fmt::format("%{} is {}, not {}", name.text, results[k].type().str(), stated.str()));
      ++k;
    } while (lexer_.accept(","));
    if (k != results.size())
      lexer_.fail(name, fmt::format("%{} has {}, but {} stated", name.text,
                                    counted(results.size(), "result"),
                                    k == 1 ? "1 type is" : fmt::format("{} types are", k)));
  }

  void output() {
    const Token at = lexer_.next();
    const Token name = lexer_.expect(Kind::string, "the output's name in quotes");
    lexer_.expect("=");
    const Tensor result = value();
    at_line(at, [&] { graph_.output(name.text, result); });
  }

  void update() {
    const Token at = lexer_.next();
    const Tensor leaf = value();
    lexer_.expect("=");
    const Tensor result = value();
    at_line(at, [&] { graph_.update(leaf, result); });
  }

  // Errors of Graph's own functions name a C++ line; here the text's line is the right one.
  template <class F>
  void at_line(const Token& at, F&& call) {
    try {
      call();
    } catch (const TypeError& error) {
      const std::string_view what = error.what();
      const std::size_t colon = what.find("): ");
      throw_type_error(
          at.text, place(at),
          std::string(colon == std::string_view::npos ? what : what.substr(colon + 3)));
    }
  }

  Lexer lexer_;
  std::string_view file_;
  const OpLookup& find_op_;
  std::span<const std::string> op_names_;
  Graph graph_;
  std::shared_ptr<GraphData> data_;
  std::map<std::string, std::vector<Tensor>> values_;
};

}  // namespace

Graph parse(std::string_view text, std::string_view file, const OpLookup& find_op,
            std::span<const std::string> op_names) {
  return Parser(text, file, find_op, op_names).run();
}

}  // namespace pantala::ir
