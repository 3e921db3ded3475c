// Text from language models.
#include "pantala/generate.h"

#include "loaders.h"
#include "options.h"
#include "session_box.h"

namespace pantala::python {

namespace {

class GeneratorBox {
 public:
  GeneratorBox(const zoo::LlamaConfig& config, const GeneratorOptions& options)
      : generator_(shared_unless_forked(Generator(config, options), usable_)) {}
  // Over a session that lives as long as this does.
  GeneratorBox(std::shared_ptr<Session> session, std::shared_ptr<Usable> usable,
               const zoo::LlamaConfig& config, const GeneratorOptions& options)
      : usable_(std::move(usable)), session_(std::move(session)) {
    const Usable::Use use(*usable_);
    generator_ = shared_unless_forked(Generator(*session_, config, options), usable_);
  }
  template <class F>
  auto use(F&& work) const {
    const Usable::Use use(*usable_);
    return work(*generator_);
  }
  template <class F>
  auto run(F&& work) const {
    const Usable::Use use(*usable_);
    const nb::gil_scoped_release others_run;
    return work(*generator_);
  }
  SessionBox session() const {
    if (session_) return {session_, usable_};
    return {std::shared_ptr<Session>(generator_, &generator_->session()), usable_};
  }

 private:
  std::shared_ptr<Usable> usable_ = std::make_shared<Usable>("generator");
  std::shared_ptr<Session> session_;  // of somebody else; none: the generator has its own
  std::shared_ptr<Generator> generator_;
};

void take_sampler(Given& given, SamplerOptions& options) {
  given.take("temperature", options.temperature)
      .take("top_k", options.top_k)
      .take("top_p", options.top_p)
      .take("seed", options.seed);
}

GenerateOptions generate_options(const nb::dict& values) {
  GenerateOptions options;
  Given given(values, "generate");
  given.take("max_tokens", options.max_tokens).take("stop_tokens", options.stop_tokens);
  take_sampler(given, options.sampler);
  if (const nb::object called = given.find("on_token"); !called.is_none())
    options.on_token = [kept = kept_object(called)](std::int64_t token) {
      const nb::gil_scoped_acquire lock;
      return !nb::object((*kept)(token)).equal(nb::bool_(false));
    };
  given.finish();
  return options;
}

GeneratorOptions generator_options(const nb::dict& values) {
  GeneratorOptions options;
  std::string cache;
  Given(values, "generator")
      .take("batch", options.batch)
      .take("cache", options.cache)
      .take("prefill_chunk", options.prefill_chunk)
      .take("device", options.device)
      .take("threads", options.threads)
      .take("plan_cache", cache)
      .finish();
  options.plan_cache = cache;
  return options;
}

// Of the token that follows, [vocabulary].
nb::object logits_of(const GeneratorBox& box, std::int64_t row) {
  return box.use([&](Generator& g) {
    const std::span<const float> logits = g.logits(row);
    return to_numpy(data::Array{{std::ssize(logits)}, std::vector(logits.begin(), logits.end())});
  });
}

nb::tuple generate(const GeneratorBox& box, const std::vector<std::int64_t>& prompt,
                   const nb::dict& values) {
  const GenerateOptions options = generate_options(values);
  const Generated made = box.run([&](Generator& g) { return g.generate(prompt, options); });
  constexpr const char* kNames[] = {"token", "length", "cache", "callback"};
  return nb::make_tuple(made.tokens, kNames[static_cast<std::size_t>(made.stopped)]);
}

}  // namespace

void bind_generate(nb::module_& m) {
  nb::class_<GeneratorBox>(m, "Generator")
      .def("__init__",
           [](GeneratorBox* made, const zoo::LlamaConfig& config, const nb::dict& values) {
             const GeneratorOptions options = generator_options(values);
             const nb::gil_scoped_release others_run;
             new (made) GeneratorBox(config, options);
           })
      .def("__init__",
           [](GeneratorBox* made, const SessionBox& session, const zoo::LlamaConfig& config,
              const nb::dict& values) {
             const GeneratorOptions options = generator_options(values);
             const std::shared_ptr<Session> kept = session.open();
             const nb::gil_scoped_release others_run;
             new (made) GeneratorBox(kept, session.usable(), config, options);
           })
      .def("session", &GeneratorBox::session)
      .def("capacity",
           [](const GeneratorBox& box) {
             return box.run([](Generator& g) { return g.capacity(); });
           })
      .def("position",
           [](const GeneratorBox& box) {
             return box.run([](Generator& g) { return g.position(); });
           })
      .def("reset", [](const GeneratorBox& box) { box.run([](Generator& g) { g.reset(); }); })
      .def("rewind",
           [](const GeneratorBox& box, std::int64_t position) {
             box.run([&](Generator& g) { g.rewind(position); });
           })
      .def("feed",
           [](const GeneratorBox& box, const std::vector<std::int64_t>& tokens) {
             box.run([&](Generator& g) { g.feed(tokens); });
           })
      .def("logits", logits_of)
      .def("generate", generate);
  nb::class_<Sampler>(m, "Sampler")
      .def("__init__",
           [](Sampler* made, const nb::dict& values) {
             SamplerOptions options;
             Given given(values, "sampler");
             take_sampler(given, options);
             given.finish();
             new (made) Sampler(options);
           })
      .def("pick",
           [](Sampler& sampler, nb::handle logits) {
             const ReadArray read(logits, "logits");
             const auto* const numbers = std::get_if<std::span<const float>>(&read.elements());
             if (numbers == nullptr) throw TypeError("logits: the sampler takes f32");
             return sampler.pick(*numbers);
           })
      .def("restart", &Sampler::restart);
}

}  // namespace pantala::python
