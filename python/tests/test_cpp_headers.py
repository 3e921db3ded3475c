"""Every function, class and option of the public headers is in the package, under its own name or one
that is listed here, or has a reason why not; options have the same defaults."""

import inspect

import pytest

import pantala as pn
from headers import HEADERS, fields_of, free_functions, methods_of, same, text_of, types_of, value_of

FILES = sorted(path for path in HEADERS.rglob("*.h") if path.parent.name != "ops")
PLACES = (pn, pn.data, pn.init, pn.nn, pn.optim, pn.rates, pn.run, pn.zoo)


def found(path):
    """What a dotted name below the package is."""
    value = pn
    for part in path.split("."):
        value = getattr(value, part, None)
    return value


# --- functions

# What is called otherwise in Python.
RENAMED = {
    "import_model": "load_onnx", "export_model": "export_onnx", "summarize": "inspect",
    "compile_training_graph": "compile", "load_or_compile": "compile", "load_or_compile_training": "compile",
    "build_session_with_report": "Session.report",
    "make_dataset": "data.dataset", "make_loader": "data.loader", "select": "data.Dataset.select",
    "slice": "data.Dataset.slice", "split": "data.Dataset.split",
    "preset": "zoo.model", "run_training": "run.train", "read_config": "run.train", "run_sweep": "run.sweep",
    "fit_in_folder": "Trainer.fit", "draw_plots": "run.draw_plots",
    "parse_dtype": "dtype", "dtype_name": "DType.value", "dtype_bytes": "DType.numpy",
    "is_float": "DType.is_float", "is_integer": "DType.is_integer",
    "to_text": "Graph.text", "make": "init.Initializer.make",
    "rate_descriptions": "rates", "append": "make_training_step",
}
# Why a function is for programs in C++ alone.
TABLES = "a name or a table of names, which signatures have here"
NUMPY = "arithmetic of shapes and numbers, which NumPy has"
RANKS = "several ranks, which the command and programs in C++ have (docs/cluster.md)"
CPP_ONLY = {
    **dict.fromkeys(["cost_table_text", "memory_limit_named", "numerics_named", "numerics_names", "rewrite_named",
                     "rewrite_names", "guard_name", "guard_names", "activation_names", "activation_of", "activate",
                     "kind_name", "larger_is_better", "names", "table", "parse_progress_mode"], TABLES),
    **dict.fromkeys(["can_hold", "round_to", "wrap_to", "broadcast_shapes", "fans"], NUMPY),
    **dict.fromkeys(["ranks_in_process", "single_rank"], RANKS),
    **dict.fromkeys(["progress_on_stderr", "seconds_since_1970"], "how a program in C++ shows progress"),
    **dict.fromkeys(["sgd_on_graph", "adam_on_graph", "find_group", "checked", "set_scalars"],
                    "optimizers as graphs of their own, for those who write one in C++"),
    "item_type": "the loader's first batch tells it",
}


@pytest.mark.parametrize("header", FILES, ids=lambda path: path.relative_to(HEADERS).as_posix())
def test_functions(header):
    missing = []
    for name in free_functions(text_of(header)):
        there = any(callable(getattr(place, name, None)) for place in PLACES)
        if not there and name not in CPP_ONLY and found(RENAMED.get(name, "?")) is None:
            missing.append(name)
    assert not missing


def test_the_lists_name_nothing_that_is_gone():
    names = set().union(*(free_functions(text_of(header)) for header in FILES))
    assert not (set(RENAMED) | set(CPP_ONLY)) - names
    assert not set(RENAMED) & set(CPP_ONLY)
    assert len(names) > 100


# --- classes

# The class here, and what of its functions has another name or is for C++ alone.
CLASSES = {
    "Graph": (pn.Graph, {"data", "size"}),
    "Session": (pn.Session, {"run", "input_type", "output_type", "stored_type", "output_memory", "stored_memory",
                             "output_scalar", "set_learning_rate", "memory_summary", "compiled", "kernels",
                             "add_span", "data"}),
    "SessionPlan": (pn.Plan, {"input_type", "output_type", "output_memory", "output_scalar", "runs_ahead"}),
    "Trainer": (pn.Trainer, {"add_callback", "config", "into_session", "train", "train_epoch"}),
    "Generator": (pn.Generator, set()),
    "Sampler": (pn.Sampler, {"options"}),
    "Weights": (pn.Weights, {"bytes", "contains", "erase", "names", "read", "set", "source"}),
    "LoadWeightsReport": (pn.LoadReport, {"text"}),
    "RateSchedule": (pn.RateSchedule, {"from_options", "kind", "length_option", "names", "str"}),
    "Plateau": (pn.Plateau, {"from_options", "options", "restore", "state", "str"}),
    "CompiledPlan": (pn.CompiledPlan, {"buffers", "data", "parameter_gradients"}),
    "Report": (pn.Report, {"json", "text"}),
    "Dataset": (pn.data.Dataset, {"item_form", "size"}),
    "Loader": (pn.data.Loader, {"shuffle", "reset", "next_batch", "seek", "batches", "batch_sizes", "fingerprint"}),
    "MetricCallback": (pn.Callback, {"looks_at", "looks_at_gradients"}),
    "Evaluation": (pn.Evaluation, {"value"}),
    "Tensor": (pn.Tensor, {"dim", "graph", "id", "numel", "rank", "type", "valid"}),
    "LlamaConfig": (pn.zoo.LlamaConfig, {"size_of_head"}),
    "WhisperConfig": (pn.zoo.WhisperConfig, {"head_dim", "length"}),
}


def classes_of_headers():
    for header in FILES:
        for name, body in types_of(text_of(header)).items():
            if (header.name, name) not in {("interpreter.h", "Session"), ("onnx.h", "Tensor"), ("metrics.h", "Column")}:
                yield name, body


def has(kind, name):
    """A function or property of the class, or what its objects are given when they are made."""
    return hasattr(kind, name) or f"self.{name} = " in inspect.getsource(kind) or f"self.{name}: " in inspect.getsource(kind)


@pytest.mark.parametrize("name", CLASSES)
def test_classes(name):
    kind, others = CLASSES[name]
    (body,) = [body for other, body in classes_of_headers() if other == name]
    names = methods_of(body)
    assert names or others == set()
    assert not [n for n in names - others if not has(kind, n)]
    assert not others - names, "of the functions that are left out these are gone"


# --- options

# Where the members of a struct are arguments, and those that have another form here.
OPTIONS = {
    "DifferentiateOptions": (pn.differentiate, set()),
    "LoaderOptions": (pn.data.loader, {"shards", "first_shard", "last_shard"}),  # RANKS
    "CsvOptions": (pn.data.read_csv, set()),
    "ImageOptions": (pn.data.read_image_folder, set()),
    "TokenOptions": (pn.data.read_tokens, set()),
    "SamplerOptions": (pn.Sampler, set()),
    "GeneratorOptions": (pn.Generator, set()),
    "GenerateOptions": (pn.Generator.generate, {"sampler"}),
    "PlateauOptions": (pn.rates.plateau, set()),
    "RunOptions": (pn.run.train, {"poll", "stop", "surroundings", "profile", "trace", "ranks", "strict_ranks"}),
    "SweepRequest": (pn.run.sweep, {"options"}),
    "FolderOptions": (pn.Trainer.fit, {"progress", "log", "plots", "command", "device", "threads"}),
    "SessionOptions": (pn.Session, set()),
    "PrintOptions": (pn.Graph.text, set()),
    "EarlyStopping": (pn.EarlyStopping, set()),
    "CheckpointOptions": (pn.Checkpoints, {"extra"}),
    # on_non_finite, beside the guard of compilations; RANKS
    "TrainConfig": (pn.Trainer, {"log_interval", "non_finite", "distributed"}),
    "FitOptions": (pn.Trainer.fit, {"poll"}),
    "SaveWeightsOptions": (pn.Weights.save, set()),
    "LoadWeightsOptions": (pn.Session.load_weights, set()),
    "ImportOptions": (pn.load_onnx, set()),
    "ExportOptions": (pn.export_onnx, set()),
    "ParameterGroup": (pn.ParameterGroup, set()),
    "LlamaConfig": (pn.zoo.LlamaConfig, set()),
    "LlamaSizes": (pn.zoo.resized, set()),
    "LlamaSize": (pn.zoo.llama, set()),
    "LlamaCacheSize": (pn.zoo.llama_cached, set()),
    "WhisperConfig": (pn.zoo.WhisperConfig, set()),
    "WhisperSizes": (pn.zoo.whisper_encoder, set()),
    "WhisperTraining": (pn.zoo.whisper_training, set()),
    "ResnetOptions": (pn.zoo.resnet18, set()),
    "MlpConfig": (pn.zoo.mlp, set()),
    "LenetConfig": (pn.zoo.lenet, set()),
    **{name: (getattr(pn.data, name), set()) for name in (
        "Scale", "Normalize", "Reshape", "Pad", "Resize", "RandomCrop", "CenterCrop", "RandomResizedCrop", "RandomFlip",
        "ColorJitter", "RandomRotation", "Channels", "OneHot", "Column", "TableRows")},
}
# What else is a struct of options, and where that is.
ELSEWHERE = {
    "CompileOptions": "a typed dict, below", "TrainingStepOptions": "the same",
    "AppendOptions": "the same, with the names of TrainingStepOptions", "ClipOptions": "clip_norm and clip_value",
    "AccumulationConfig": "the accumulator for loops of one's own; sessions have accumulation_steps",
    "ProgressOptions": "fit(progress=...)", "RunLogOptions": "run folders log as `pantala train` does",
    "RunMonitorOptions": "the same", "RunConfig": "files and \"key=value\", which run.train takes",
    "Surroundings": "plan_cache", "Request": "zoo.model", "Options": RANKS,
}
LAYERS = {name for name in types_of(text_of(HEADERS / "nn.h"))}  # test_cpp.py compares them
DEFAULTS = {  # as Python says what C++ says otherwise
    "std::uint64_t{3} << 29": 3 << 29,
    "optim::sgd(0.01)": None,
    "{\"*num_batches_tracked\", \"*rotary_emb.inv_freq\"}": None,
    "','": ",",
    "nullptr": None,
}
# Named in the header as a value that makes no sense, and an argument without a default here.
REQUIRED = {"height", "classes", "width", "mean", "std", "shape", "pattern", "keys", "folder", "name", "numbers", "fields",
            "labels", "config"}


def default_of(text):
    return DEFAULTS[text] if text in DEFAULTS else value_of(text)


def bodies():
    return dict(classes_of_headers())


@pytest.mark.parametrize("struct", OPTIONS)
def test_options(struct):
    function, others = OPTIONS[struct]
    parameters = inspect.signature(function).parameters
    problems = []
    fields = fields_of(bodies()[struct])
    assert fields
    for name, default in fields:
        if name in others:
            continue
        if name not in parameters:
            problems.append(f"there is no argument {name}")
            continue
        python = parameters[name].default
        if python is inspect.Parameter.empty:
            if name not in REQUIRED:
                problems.append(f"{name} has no default")
        elif default is not None and not same(default_of(default), python) and not (python == "" and default == "{}"):
            problems.append(f"{name} is {default} in C++ and {python!r} in Python")
    assert not problems
    assert not others - {name for name, _ in fields}


def test_every_struct_of_options_is_known():
    names = {name for name in bodies() if name.endswith(("Options", "Config", "Sizes", "Size", "Request", "Surroundings"))}
    assert len(names) > 30
    assert not names - set(OPTIONS) - set(ELSEWHERE) - LAYERS


def test_options_of_a_compilation():
    known = set(pn.CompileOptions.__annotations__)
    there = bodies()
    fields = {name for struct in ("CompileOptions", "TrainingStepOptions", "AppendOptions") for name, _ in fields_of(there[struct])}
    ranks = {"updated", "guard_micro_batches"}  # RANKS
    assert not fields - known - ranks - {"optimizer", "training", "trace", "cancelled", "clip"}
    assert known - fields == {"clip_norm", "clip_value"}
