// Files of tokens, and text, whose tokens are its bytes.
#include "run/core/key_types.h"
#include "run/sources/source.h"

namespace pantala::run {

Source tokens_source() {
  return {.name = "tokens",
          .argument = "FILE",
          .help = "numbers one after the other (data.token_type)",
          .endings = {".bin"},
          .keys =
              {
                  whole("data.sequence", RUN_FIELD(data.sequence), 1, 1048576,
                        "Of tokens: how many are an item"),
                  whole("data.stride", RUN_FIELD(data.stride), 0, 1048576,
                        "Of tokens: from the beginning of an item to that of the next; 0: "
                        "data.sequence"),
                  choice("data.token_type", RUN_FIELD(data.token_type), {"u8", "u16", "i32"},
                         "Of tokens: the numbers in the file, the lowest byte first"),
                  whole("data.vocabulary", RUN_FIELD(data.vocabulary), 0, DataFacts::kMaxClasses,
                        "Of tokens: they lie below this; 0: the model's own vocabulary, of text "
                        "256"),
              },
          .tokens = TokenForm{}};
}

Source text_source() {
  return {.name = "text",
          .argument = "FILE",
          .help = "any file, byte by byte",
          .endings = {".txt"},
          .more_keys = {"data.sequence", "data.stride", "data.vocabulary"},
          .tokens = TokenForm{.type = data::TokenType::u8, .vocabulary = 256, .bytes = true}};
}

}  // namespace pantala::run
