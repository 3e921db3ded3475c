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
  template <class F>
  auto run(F&& work) const {
    const Usable::Use use(*usable_);
    const nb::gil_scoped_release others_run;
    return work(*generator_);
  }
  SessionBox session() const {
    return {std::shared_ptr<Session>(generator_, &generator_->session()), usable_};
  }

 private:
  std::shared_ptr<Usable> usable_ = std::make_shared<Usable>("generator");
  std::shared_ptr<Generator> generator_;
};

GenerateOptions generate_options(const nb::dict& values) {
  GenerateOptions options;
  Given given(values, "generate");
  given.take("max_tokens", options.max_tokens)
      .take("stop_tokens", options.stop_tokens)
      .take("temperature", options.sampler.temperature)
      .take("top_k", options.sampler.top_k)
      .take("top_p", options.sampler.top_p)
      .take("seed", options.sampler.seed);
  if (const nb::object called = given.find("on_token"); !called.is_none())
    options.on_token = [kept = kept_object(called)](std::int64_t token) {
      const nb::gil_scoped_acquire lock;
      return !nb::object((*kept)(token)).equal(nb::bool_(false));
    };
  given.finish();
  return options;
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
             const nb::gil_scoped_release others_run;
             new (made) GeneratorBox(config, options);
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
      .def("generate", generate);
}

}  // namespace pantala::python
