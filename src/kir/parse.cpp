#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "ir/lexer.h"
#include "kir/text.h"
#include "kir/verify.h"
#include "pantala/error.h"

namespace pantala::kir {

namespace {

using ir::Lexer;
using ir::Token;

class Parser {
 public:
  Parser(std::string_view text, std::string_view file) : lexer_(text, file) {}

  Kernel kernel() {
    word("kernel");
    kernel_.name = lexer_.expect(Token::Kind::string, "the kernel's name in quotes").text;
    lexer_.expect("{");
    arguments();
    if (accept_word("threads")) threads();
    word("item");
    do { kernel_.body.params.push_back(define({DType::i64, 1})); } while (lexer_.accept(","));
    block(kernel_.body, 0);
    if (lexer_.peek().kind != Token::Kind::end) lexer_.fail_expected("the end of the text");
    // Numbers are given to values as written: they must count 0, 1, 2, ... without holes.
    for (const auto& [id, type] : defined_) {
      if (id != kernel_.types.size())
        throw ParseError(
            fmt::format("kernel '{}': %{} is defined {}", kernel_.name, id,
                        id < kernel_.types.size() ? "twice" : "without all numbers below it"));
      kernel_.types.push_back(type);
    }
    verify(kernel_);
    return std::move(kernel_);
  }

 private:
  static constexpr int kMaxDepth = 64;

  // Words.
  bool accept_word(std::string_view text) {
    if (lexer_.peek().kind != Token::Kind::word || lexer_.peek().text != text) return false;
    lexer_.next();
    return true;
  }
  void word(std::string_view text) {
    if (!accept_word(text)) lexer_.fail_expected(fmt::format("'{}'", text));
  }
  std::string name() { return lexer_.expect(Token::Kind::word, "a name").text; }

  // Numbers. The whole token must be one.
  template <class N>
  N number(const Token& token, std::string_view what) const {
    N value{};
    const char* end = token.text.data() + token.text.size();
    const auto [rest, error] = std::from_chars(token.text.data(), end, value);
    if (error != std::errc{} || rest != end)
      lexer_.fail(token, fmt::format("'{}' is not {}", token.text.substr(0, 40), what));
    return value;
  }
  std::int64_t integer() {
    return number<std::int64_t>(lexer_.expect(Token::Kind::number, "an integer"),
                                "an integer of 64 bits");
  }
  double real() {
    if (accept_word("nan")) return std::numeric_limits<double>::quiet_NaN();
    if (accept_word("inf")) return std::numeric_limits<double>::infinity();
    return number<double>(lexer_.expect(Token::Kind::number, "a number"), "a number");
  }

  // Types and values.
  DType dtype(const Token& token, std::string_view text) const {
    const auto t = parse_dtype(text);
    if (!t) lexer_.fail(token, fmt::format("'{}' is not a dtype", text));
    return *t;
  }
  DType dtype() {
    const Token token = lexer_.expect(Token::Kind::word, "a dtype");
    return dtype(token, token.text);
  }
  VType type() {
    const Token token = lexer_.expect(Token::Kind::word, "a type");
    const std::size_t x = token.text.find('x');
    if (x == std::string::npos) return {dtype(token, token.text), 1};
    Token lanes = token;
    lanes.text = token.text.substr(x + 1);
    return {dtype(token, token.text.substr(0, x)), number<int>(lanes, "a number of lanes")};
  }
  Value value() {
    const Token token = lexer_.expect(Token::Kind::value, "a value such as %3");
    return {number<std::uint32_t>(token, "the number of a value")};
  }
  Value define(VType t) {
    const Value v = value();
    define(v, t);
    return v;
  }
  void define(Value v, VType t) {
    defined_.insert(
        std::ranges::upper_bound(defined_, v.id, {}, [](const auto& d) { return d.first; }),
        {v.id, t});
  }
  std::vector<Value> values() {
    std::vector<Value> list{value()};
    while (lexer_.accept(",")) list.push_back(value());
    return list;
  }

  void arguments() {
    for (;;) {
      if (accept_word("buffer")) {
        Buffer b{.name = name()};
        lexer_.expect(":");
        b.dtype = dtype();
        b.access = accept_word("read")    ? Access::read
                   : accept_word("write") ? Access::write
                                          : (word("read_write"), Access::read_write);
        kernel_.buffers.push_back(b);
      } else if (accept_word("scratch")) {
        Buffer b{.name = name(), .access = Access::read_write, .space = Space::scratch};
        lexer_.expect(":");
        b.dtype = dtype();
        lexer_.expect("[");
        b.size = integer();
        lexer_.expect("]");
        kernel_.buffers.push_back(b);
      } else if (accept_word("param")) {
        Param p{.name = name()};
        lexer_.expect(":");
        p.dtype = dtype();
        kernel_.params.push_back(p);
      } else {
        return;
      }
    }
  }

  void threads() {
    const Token token = lexer_.expect(Token::Kind::number, "a number of threads");
    kernel_.threads = number<int>(token, "a number of threads");
  }

  // Up to and with the closing brace.
  void block(Block& block, int depth) {
    if (depth > kMaxDepth) lexer_.fail(lexer_.peek(), "the blocks are nested too deeply");
    while (!lexer_.accept("}")) {
      if (accept_word("yield")) {
        block.yields = values();
        return lexer_.expect("}");
      }
      block.body.push_back(inst(depth));
    }
  }

  Inst inst(int depth) {
    Inst inst;
    std::vector<VType> types;
    if (lexer_.peek().kind == Token::Kind::value) {
      do {
        inst.results.push_back(value());
        lexer_.expect(":");
        types.push_back(type());
      } while (lexer_.accept(","));
      lexer_.expect("=");
    }
    const Token token = lexer_.expect(Token::Kind::word, "an instruction");
    const auto op = parse_op(token.text);
    if (!op) lexer_.fail(token, fmt::format("there is no instruction '{}'", token.text));
    inst.op = *op;
    for (std::size_t k = 0; k < types.size(); ++k) define(inst.results[k], types[k]);
    operands(inst, types, depth);
    return inst;
  }

  void operands(Inst& inst, const std::vector<VType>& types, int depth) {
    switch (inst.op) {
      case Op::constant:
        if (types.empty()) lexer_.fail(lexer_.peek(), "a constant without a result");
        if (is_float(types[0].dtype)) {
          inst.imm = real();
        } else {
          inst.index = integer();
        }
        return;
      case Op::param:
        inst.index = find(kernel_.params, "parameter");
        return;
      case Op::extract:
        inst.args = {value()}, word("lane"), inst.index = integer();
        return;
      case Op::report:
        inst.args = values();
        if (inst.args.size() == 1) word("code"), inst.index = integer();
        return;
      case Op::loop:
        return loop(inst, types, depth);
      case Op::if_:
        return branch(inst, depth);
      default:
        if (touches_memory(inst.op)) return memory(inst);
        if (lexer_.peek().kind == Token::Kind::value && inst.op != Op::iota &&
            inst.op != Op::barrier)
          inst.args = values();
    }
  }

  template <class List>
  std::int64_t find(const List& list, std::string_view what) {
    const Token token = lexer_.expect(Token::Kind::word, fmt::format("the name of a {}", what));
    const auto found =
        std::ranges::find_if(list, [&](const auto& entry) { return entry.name == token.text; });
    if (found == list.end())
      lexer_.fail(token, fmt::format("there is no {} '{}'", what, token.text));
    return found - list.begin();
  }

  void memory(Inst& inst) {
    inst.index = find(kernel_.buffers, "buffer");
    lexer_.expect("[");
    inst.args = {value()};
    if (inst.op == Op::load_strided || inst.op == Op::store_strided)
      word("by"), inst.args.push_back(value());
    lexer_.expect("]");
    if (inst.op == Op::store || inst.op == Op::store_strided)
      lexer_.expect("="), inst.args.push_back(value());
    inst.masked = accept_word("mask");
    if (inst.masked) inst.args.push_back(value());
    inst.stream = accept_word("stream");
  }

  void loop(Inst& inst, const std::vector<VType>& types, int depth) {
    Block& body = inst.blocks.emplace_back();
    body.params = {define({DType::i64, 1})};
    for (const std::string_view w : {"in", "to", "step"}) word(w), inst.args.push_back(value());
    if (accept_word("carry")) {
      lexer_.expect("(");
      do {
        // A carried value has the type of its result; a surplus one is found by the verifier.
        const std::size_t k = body.params.size() - 1;
        body.params.push_back(define(k < types.size() ? types[k] : VType{}));
        lexer_.expect("=");
        inst.args.push_back(value());
      } while (lexer_.accept(","));
      lexer_.expect(")");
    }
    lexer_.expect("{");
    block(body, depth + 1);
  }

  void branch(Inst& inst, int depth) {
    inst.args = {value()};
    inst.blocks.resize(2);
    lexer_.expect("{");
    block(inst.blocks[0], depth + 1);
    if (!accept_word("else")) return;
    lexer_.expect("{");
    block(inst.blocks[1], depth + 1);
  }

  Lexer lexer_;
  Kernel kernel_;
  std::vector<std::pair<std::uint32_t, VType>> defined_;  // sorted by number
};

}  // namespace

Kernel parse(std::string_view text, std::string_view file) { return Parser(text, file).kernel(); }

}  // namespace pantala::kir
