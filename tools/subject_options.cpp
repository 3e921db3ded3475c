#include "tools/subject_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/compile_flags.h"

namespace pantala::tools {

void add_subject_options(VerbOptions& verb, InspectSubject& subject) {
  verb.add_option(
          "SOURCE", subject.name,
          fmt::format("A model ({}), a file with a graph in text form, a safetensors file, "
                      "index or folder, an ONNX file, a compiled plan, or the folder of a run",
                      fmt::join(model_names(), ", ")))
      ->required();
  verb.add_option("--batch", subject.batch, "Items of a batch, of a model or a run");
  verb.add_option(
      "--loss", subject.loss,
      "The output of the file's graph that is trained; without it the graph is compiled "
      "as it is");
  verb.add_option("--optimizer", subject.optimizer,
                  "By name, or none: gradients only (without it: adam, or that of the run)");
  verb.add_option("--accumulate", subject.accumulate,
                  "Micro-batches per update (without it: 1, or as in the run)");
  verb.add_flag("--inference", subject.inference,
                "A model or run without training: the forward pass alone");
  verb.add_option("--size", subject.sizes, "NAME=N: a symbolic size of an ONNX file");
  verb.add_flag("--unfused", subject.unfused, "A kernel per op");
  add_compile_flags(verb, subject.compile);
  verb.add_option("--threads", subject.threads,
                  "That will share the work; 0: all there are, or as in the run")
      ->capture_default_str();
}

}  // namespace pantala::tools
