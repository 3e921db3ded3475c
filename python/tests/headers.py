"""The public headers of the C++ library, read as text: functions with their arguments, classes with
their functions, and the structs of their options with their defaults."""

import inspect
import re

import pantala as pn
from conftest import ROOT

HEADERS = ROOT / "include" / "pantala"
NUMBER = {"kIgnoredLabel": -100}
# Members of structs of options that several functions share, where they say nothing of a function.
NOT_OF = {("max_pool2d", "count_include_pad"), ("max_pool2d_with_indices", "count_include_pad"),
          ("gru", "c0"), ("rnn", "c0")}


def text_of(path):
    return re.sub(r"//[^\n]*", "", path.read_text())


def arguments(text):
    """(type, name, default or None) of a list of arguments."""
    parts, depth, part = [], 0, ""
    for c in text:
        depth += (c in "<({") - (c in ">)}")
        if c == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += c
    found = []
    for entry in [*parts, part]:
        left, _, default = entry.partition("=")
        words = left.strip().rsplit(" ", 1)
        if len(words) == 2:
            found.append((words[0].strip(), words[1].lstrip("&*"), default.strip() or None))
    return found


def body_at(text, start):
    """What stands between the brace there and the one that closes it."""
    depth, end = 1, start + 1
    while depth:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    return text[start + 1 : end - 1]


def structs(text):
    """Fields of each struct of options: {name: [(field, default)]}."""
    found = {}
    for match in re.finditer(r"struct (\w+) \{", text):
        fields = []
        for statement in body_at(text, match.end() - 1).split(";"):
            statement = " ".join(statement.split())
            member = re.match(r"([\w:]+(?:<[^>]*>)?) (\w.*)", statement)
            if member and not re.match(r"(static|friend|enum|struct) ", statement) and "(" not in statement:
                parts = re.split(r", (?=\w+ ?[=,]|\w+$)", member[2])
                fields += [tuple(p.strip() for p in f"{part}=".split("=")[:2]) for part in parts]
        found[match[1]] = [(name, default or None) for name, default in fields]
    return found


def functions(text):
    returned = (r"(?:Tensor|Topk|BatchNormResult|LstmStates|LossParts|LstmOutput|RecurrentOutput"
                r"|std::vector<Tensor>|std::pair<Tensor, Tensor>)")
    for kind, name, given in re.findall(rf"\n({returned}) (\w+)\(((?:[^()]|\([^()]*\))*)\);", text):
        if not name.startswith("operator"):
            yield name, arguments(given.replace("Where::current()", "here"))


def value_of(default):
    """What a default of C++ is in Python."""
    default = default.strip()
    if default in ("true", "false"):
        return default == "true"
    if default in NUMBER:
        return NUMBER[default]
    if default in ("{}", ""):
        return None
    if match := re.fullmatch(r"\{(-?\d+)\}", default):
        return int(match[1])
    if match := re.fullmatch(r'"(.*)"', default):
        return match[1]
    if re.fullmatch(r"-?[\d.]+(e-?\d+)?", default):
        return float(default)
    if match := re.fullmatch(r"([\d.]+) / ([\d.]+)", default):
        return float(match[1]) / float(match[2])
    return default.split("::")[-1]


def same(cpp, python):
    if cpp is None:
        return python in (None, ()) or python == [] or python is False
    if isinstance(python, pn.DType):
        return cpp == python.name
    if isinstance(python, tuple):
        return cpp in (None, python, *python)
    if isinstance(cpp, float) and not isinstance(python, (str, bool, tuple)):
        return float(python) == cpp
    return cpp == python


def expected_arguments(given, options):
    for kind, name, default in given:
        struct = kind.replace("const ", "").replace("&", "").split("::")[-1].strip()
        if struct == "Where":
            continue
        if struct in options:
            yield from options[struct]
        else:
            yield name, default


def check(name, function, given, options, problems):
    parameters = inspect.signature(function).parameters
    for argument, default in expected_arguments(given, options):
        if (name, argument) in NOT_OF:
            continue
        if argument not in parameters:
            problems.append(f"{name}: there is no argument {argument}")
        elif default is not None:
            python = parameters[argument].default
            if python is inspect.Parameter.empty or not same(value_of(default), python):
                problems.append(f"{name}: {argument} is {default} in C++ and {python!r} in Python")


# --- whole headers


def without_bodies(text):
    """Functions that are written out in the header, as declarations."""
    return re.sub(r"\)((?: const)?(?: noexcept)?) *(?::[^;{]*)?\{[^{}]*\}", r")\1;", text)


def without_templates(text):
    while (shorter := re.sub(r"<[^<>]*>", "", text)) != text:
        text = shorter
    return text


def split_outside(text, at):
    """The parts between the characters `at` that stand in no bracket and in no quotes."""
    parts, depth, quote = [""], 0, ""
    for c in text:
        if c in "'\"" and quote in ("", c):
            quote = "" if quote else c
        depth += (c in "({") - (c in ")}")
        if c == at and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def fields_of(body):
    """(name, default or None) of each member of a struct."""
    found = []
    for statement in split_outside(without_bodies(body.split("private:")[0]), ";"):
        text = " ".join(without_templates(statement).replace("public:", "").split())
        if not text or re.match(r"(static|friend|enum|struct|using|explicit|virtual|public|private)\b", text):
            continue
        declared = [part.partition("=") for part in split_outside(text, ",")]
        if "(" in declared[0][0]:
            continue
        for left, _, default in declared:
            found.append((left.split()[-1], default.strip() or None))
    return found


def types_of(text):
    """{name: body} of all structs and classes, those inside of others included."""
    heads = re.finditer(r"(?<!enum )(?:struct|class) (\w+)(?: final)?(?: : [^{;]*)? \{", text)
    return {match[1]: body_at(text, match.end() - 1) for match in heads}


def methods_of(body):
    """The public functions of a class."""
    public = without_bodies(body.split("private:")[0])
    while (outer := re.sub(r"\{[^{}]*\}", "", public)) != public:
        public = outer
    names = set(re.findall(r"[\w>&*] [&*]?(\w+)\(", without_templates(public)))
    return {name for name in names if not name.startswith("operator") and not name[0].isupper()}


def free_functions(text):
    """The functions that belong to no class."""
    flat = re.sub(r"namespace [\w:]+ \{", "", without_bodies(text))
    while (outer := re.sub(r"\{[^{}]*\}", "", flat)) != flat:
        flat = outer
    flat = without_templates(flat)
    return set(re.findall(r"(?m)^(?!using|template|return|#)[\w:][\w:&* ]*?[ &*](\w+)\(", flat))
