// Trains a small Whisper encoder to tell, position by position, what it hears:
//
//   train_whisper [EPOCHS] [MEL.npy LABELS.npy]
//
// MEL.npy holds floats [items, mels, frames], LABELS.npy integers below 64, [items, (frames + 1) /
// 2]. Without files it hears sounds of its own: pitches that change every ten frames, in noise.
#include <fmt/format.h>
#include <pantala/pantala.h>

#include <cstdlib>
#include <random>

namespace pn = pantala;

namespace {

pn::data::Dataset make_sounds(std::int64_t items, std::int64_t mels, std::int64_t frames) {
  std::mt19937 random(1);
  std::vector<float> spectrogram(static_cast<std::size_t>(items * mels * frames));
  std::vector<std::int64_t> pitches;
  for (float& value : spectrogram) value = static_cast<float>(random() % 1000) / 1000;
  for (std::int64_t item = 0; item < items; ++item)
    for (std::int64_t frame = 0, pitch = 0; frame < frames; ++frame) {
      if (frame % 10 == 0) pitch = static_cast<std::int64_t>(random()) % mels;
      spectrogram[static_cast<std::size_t>((item * mels + pitch) * frames + frame)] += 1;
      if (frame % 2 == 0) pitches.push_back(pitch);  // the encoder halves the length
    }
  return pn::data::make_dataset({{items, mels, frames}, std::move(spectrogram)},
                                {{items, (frames + 1) / 2}, std::move(pitches)}, "sounds");
}

double train(const pn::data::Dataset& sounds, int epochs) {
  constexpr std::int64_t kBatch = 8;
  const pn::Shape item = sounds.data->item_shape();
  if (item.rank() != 2)
    throw pn::TypeError("spectrograms [items, mels, frames] are needed, got " +
                        sounds.data->shape.str());
  const pn::zoo::WhisperConfig config{.d_model = 32,
                                      .n_heads = 2,
                                      .n_layers = 2,
                                      .ffn_dim = 64,
                                      .n_mels = item[0],
                                      .max_source_positions = (item[1] + 1) / 2};
  pn::zoo::Model model = pn::zoo::whisper_training(config, {.batch = kBatch, .frames = item[1]});
  const pn::Tensor right = pn::eq(pn::argmax(model.logits), model.labels);
  model.graph.output("accuracy", pn::mean(pn::cast(right, pn::f32)));
  // In a model as small as this, threads would mostly wait for each other.
  pn::Session session = pn::build_session(
      model.graph, model.loss, {.threads = 1, .optimizer = pn::optim::adam(3e-3)}, {.seed = 1});

  const auto loader = pn::data::make_loader(sounds, {.batch_size = kBatch, .drop_last = true});
  double accuracy = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    loader->shuffle(static_cast<std::uint64_t>(epoch));
    double loss = 0, correct = 0;
    int steps = 0;
    while (const auto batch = loader->next_batch()) {
      session.set_input("mel", batch->data.elements());
      session.set_input("labels", batch->labels.elements());
      session.step();
      loss += session.loss();
      correct += session.output_scalar("accuracy");
      ++steps;
    }
    if (steps == 0) throw pn::TypeError(fmt::format("at least {} items are needed", kBatch));
    accuracy = correct / steps;
    fmt::print("epoch {}  loss {:.4f}  accuracy {:.1f} %\n", epoch + 1, loss / steps,
               100 * accuracy);
  }
  return accuracy;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto sounds =
        argc > 3 ? pn::data::make_dataset(pn::data::read_npy(argv[2]), pn::data::read_npy(argv[3]))
                 : make_sounds(256, 16, 40);
    const double accuracy = train(sounds, argc > 1 ? std::atoi(argv[1]) : 5);
    return accuracy > 0.9 || argc > 3 ? 0 : 1;
  } catch (const pn::Error& error) {
    fmt::print(stderr, "train_whisper: {}\n", error.what());
    return 1;
  }
}
