// The encoder of Whisper: a spectrogram becomes a sequence of vectors. Names, layouts and numbers
// are those of Hugging Face's WhisperEncoder, so that its checkpoints load as they are stored.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pantala/zoo.h"

namespace pantala::zoo {

struct WhisperConfig {
  std::int64_t d_model = 384;
  std::int64_t n_heads = 6;
  std::int64_t n_layers = 4;
  std::int64_t ffn_dim = 1536;
  std::int64_t n_mels = 80;
  std::int64_t max_source_positions = 1500;
  double layer_norm_eps = 1e-5;

  static WhisperConfig tiny();
  static WhisperConfig base();
  static WhisperConfig small();
  // TypeError if the heads do not share d_model evenly.
  std::int64_t head_dim(Where where = Where::current()) const;
  // Of the sequence for so many frames: the second convolution takes every other one. TypeError for
  // no frames, and for a sequence that is longer than the table of positions.
  std::int64_t length(std::int64_t frames, Where where = Where::current()) const;
};

// The layers on mel [batch, n_mels, frames] of any graph: [batch, length, d_model]. Two
// convolutions with GELU (the second halves the length), the first rows of the trained table of
// positions, n_layers of attention and feed-forward with the norm before each, and a last norm.
Tensor whisper_layers(Operand mel, const WhisperConfig& config);

// Sizes that a graph is made for.
struct WhisperSizes {
  std::int64_t batch = 1;
  std::int64_t frames = 3000;
};
// Inference: input "mel" [batch, n_mels, frames], output "last_hidden_state".
Graph whisper_encoder(const WhisperConfig& config, const WhisperSizes& sizes = {},
                      Where where = Where::current());

struct WhisperTraining {
  std::int64_t classes = 64;
  Labels labels = Labels::classes;  // of batch * length items
};
// Every vector is projected to classes by train_proj.weight [classes, d_model], without a bias;
// cross entropy, the mean over batch and length. The model's input is "mel", its logits are [batch
// * length, classes], the graph's only output is "loss".
Model whisper_training(const WhisperConfig& config, const WhisperSizes& sizes = {},
                       const WhisperTraining& training = {}, Where where = Where::current());

// The parameters of the encoder; training adds train_proj.weight.
std::vector<std::string> whisper_weight_names(const WhisperConfig& config,
                                              Where where = Where::current());

}  // namespace pantala::zoo
