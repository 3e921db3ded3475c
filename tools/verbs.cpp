// The list of verbs. VERB(name in C++, name on the command line, help): a row is all that the
// command, its help and the manual page need to know of one.
#include "tools/command.h"

#define PANTALA_VERBS(VERB)                                                          \
  VERB(bench, "bench", "Measure a step of a workload")                               \
  VERB(compare, "compare", "Show what runs differ in, and which is the best")        \
  VERB(devices, "devices", "List the devices of this machine")                       \
  VERB(doctor, "doctor", "Check whether this machine can train")                     \
  VERB(eval, "eval", "Evaluate the model of a run")                                  \
  VERB(explain, "explain", "Show which graph the compiler chose, and why")           \
  VERB(export, "export", "Write the model of a run, or of the zoo, as an ONNX file") \
  VERB(fixtures, "fixtures", "Run recorded cases and compare with what they expect") \
  VERB(generate, "generate", "Write text with a language model")                     \
  VERB(inspect, "inspect", "Show what the compiler makes of a model or graph")       \
  VERB(lr_find, "lr-find", "Find a learning rate")                                   \
  VERB(ops, "ops", "Print the reference of all ops")                                 \
  VERB(plot, "plot", "Draw the numbers of one run, or of several over each other")   \
  VERB(predict, "predict", "Predict classes or numbers with the model of a run")     \
  VERB(run, "run", "Run an ONNX model on arrays from files")                         \
  VERB(scale, "scale", "Predict a step on many ranks")                               \
  VERB(train, "train", "Train a model, or continue a run")                           \
  VERB(tune, "tune", "Measure a cost table for this machine")                        \
  VERB(verify_resume, "verify-resume", "Prove that an interrupted run ends with the same bits")

namespace pantala::tools {

#define PANTALA_DECLARE(function, name, help) Run function##_verb(VerbOptions& verb);
PANTALA_VERBS(PANTALA_DECLARE)
#undef PANTALA_DECLARE

std::span<const Verb> verbs() {
#define PANTALA_ROW(function, name, help) {name, help, function##_verb},
  static constexpr Verb kVerbs[] = {PANTALA_VERBS(PANTALA_ROW)};
#undef PANTALA_ROW
  return kVerbs;
}

}  // namespace pantala::tools
