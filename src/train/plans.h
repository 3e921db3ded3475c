// Plans: a trainer's session and its plans by batch size. The main step is there from the
// beginning; where the model is a function of the batch size, steps and evaluations of other sizes
// are compiled with the same options and attached to the session when they first occur. A thread of
// its own can compile them before that (prepare); it changes nothing but the time that it takes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/ahead.h"
#include "pantala/data.h"
#include "pantala/session.h"
#include "pantala/trainer.h"

namespace pantala::train {

// Names of the model's inputs and outputs, and where compiled plans are kept.
struct PlanNames {
  std::string data, labels, loss, prediction;
  std::filesystem::path cache;
};

// The user's options with what a trainer's config says about the step. TypeError for options with
// another optimizer than the config's.
CompileOptions training_options(const TrainConfig& config, CompileOptions options);
// What evaluations are compiled with beside steps of these options.
CompileOptions evaluation_options(const CompileOptions& training);

class Plans {
 public:
  Plans(Session session, PlanNames names);
  // TypeError for options that only make sense for one graph, and for a model whose graph does not
  // have the inputs and outputs.
  Plans(ModelFactory model, std::int64_t batch_size, PlanNames names, CompileOptions options,
        const SessionOptions& session);

  // Those of the config, or of the tensors that the model hands back.
  const PlanNames& names() const { return names_; }
  Session& session() { return session_; }
  const Session& session() const { return session_; }
  std::int64_t batch_size() const { return batch_size_; }
  bool has_model() const { return static_cast<bool>(model_); }

  // What a plan is for: a phase, and the items of a batch.
  using Use = std::pair<Phase, std::int64_t>;
  // Begins to compile the plan, unless there is one. The model's function is called here, by the
  // caller's thread; whatever goes wrong is told when the plan is needed.
  void prepare(const Use& use);
  bool has(const Use& use) const;
  // Whether bring() takes no time to speak of: there is the plan, or it waits to be attached.
  bool is_at_hand(const Use& use) const;
  // Compiles the plan, or waits for it, and attaches it, unless there is one. TypeError without a
  // model.
  void bring(const Use& use);

  // The step for the batch's size, with the batch as its inputs. TypeError where the batch does not
  // fit.
  const SessionPlan& step_on(const data::Batch& batch);
  // Labels of the batch that its mean loss is over: integers that are not the one that the loss
  // ignores. Of other labels the items are counted.
  std::int64_t labels_that_count(const data::Batch& batch) const;
  // Whether the loss is over the item or place with this class.
  bool counts(std::int64_t label) const;

  struct Evaluator {
    SessionPlan plan;
    Type labels;
    std::optional<Type> prediction;  // none: the graph has no such output
  };
  // Evaluation for a batch size. TypeError without a model.
  const Evaluator& evaluator(std::int64_t items);
  void check_evaluates() const;  // TypeError without a model
  void set_inputs(const SessionPlan& plan, const data::Batch& batch) const;

 private:
  struct Compiled {
    Graph graph;
    CompileResult result;
  };
  const SessionPlan& step_of_size(std::int64_t items);
  Compiled compiled(const Use& use);
  Graph checked_graph(std::int64_t items, Phase phase);
  void check_known(const CompiledPlan& plan) const;

  ModelFactory model_;
  PlanNames names_;
  CompileOptions options_;  // of training
  Session session_;
  std::int64_t batch_size_ = 0;
  std::map<std::int64_t, SessionPlan> steps_;
  std::map<std::int64_t, Evaluator> evaluators_;
  std::optional<std::int64_t> ignored_label_;
  std::map<Use, Graph> graphs_;  // of what is or waits to be compiled ahead
  Ahead<Use, Compiled> ahead_;
};

}  // namespace pantala::train
