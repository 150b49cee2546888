"""Fits the weights of pairs of classes to the counts of tokenizers, and writes them as a Rust file."""

import collections

import numpy
import scipy.optimize
import scipy.sparse

import classes
import counters

UNIT = 64
LEVELS = list(range(32)) + sorted({round(32 * 1.0364 ** k) for k in range(58)} | {255})
"""The weights that a letter in the written tables can stand for, in units of 1/64 token."""
CHUNK = 2000
"""The approximate number of characters in each row of the system of equations."""
UNDER = 4
"""The penalty for an estimate that is too low, relative to that for an estimate that is too high."""
SLACK = 1.05
"""The factor by which fitted weights are raised: most texts are then estimated a little too high."""
FLOORS = {"old scripts": 2.6, "astral": 3.0, "arabic other": 2.4}
"""The minimum weights, in tokens, of classes whose characters belong to many scripts. Tokenizers have tokens for few of
these characters."""


class Pairs:
    """The pairs of classes in all texts, in chunks."""

    def __init__(self, texts):
        names, groups = classes.numbered()
        self.names, self.groups = names, numpy.array(groups)
        lengths = [len(text["text"]) for text in texts]
        self.offsets = numpy.concatenate([[0], numpy.cumsum(lengths)])
        self.bounds, self.text_of = [], []
        for index, length in enumerate(lengths):
            ends = numpy.linspace(0, length, max(1, round(length / CHUNK)) + 1).astype(int) + self.offsets[index]
            self.bounds += zip(ends[:-1], ends[1:])
            self.text_of += [index] * (len(ends) - 1)
        self.begins = numpy.array([begin for begin, _ in self.bounds])
        table = table_of_classes(names)
        self.ids = numpy.concatenate([table[numpy.frombuffer(text["text"].encode("utf-32-le"), dtype=numpy.uint32)]
                                      for text in texts])
        before = numpy.concatenate([[0], self.groups[self.ids[:-1]]])
        before[self.offsets[:-1]] = self.groups[table[ord("\n")]]
        self.columns = len(names)
        self.size = (max(groups) + 1) * len(names)
        self.pairs = before.astype(numpy.int64) * self.columns + self.ids
        self.fitted = numpy.array([texts[index]["half"] == "fit" for index in self.text_of])
        self.of_chunk = numpy.repeat(numpy.arange(len(self.bounds)), [end - begin for begin, end in self.bounds])
        self.weights = weights_of_chunks(texts, self.text_of, self.fitted)

    def matrix(self):
        keys, counts = numpy.unique(self.of_chunk * self.size + self.pairs, return_counts=True)
        shape = (len(self.bounds), self.size)
        return scipy.sparse.csr_matrix((counts.astype(float), (keys // self.size, keys % self.size)), shape=shape)

    def prior(self, starts):
        """Returns, for each pair, the mean number of tokens that start in its second character. The rarer the pair, the
        closer this is to the mean of the class of that character."""
        known = self.fitted[self.of_chunk]
        pairs, ids, starts = self.pairs[known], self.ids[known], starts[known]
        single = numpy.bincount(ids, starts, self.columns) / numpy.maximum(1, numpy.bincount(ids, minlength=self.columns))
        many = numpy.tile(single, self.size // self.columns)
        return (numpy.bincount(pairs, starts, self.size) + 3 * many) / (numpy.bincount(pairs, minlength=self.size) + 3)


def table_of_classes(names):
    table = numpy.zeros(0x110000, dtype=numpy.int64)
    number = {name: index for index, name in enumerate(names)}
    table[:128] = [number[name] for name in classes.ascii_names()]
    ends = [first for first, _ in classes.RANGES[1:]] + [0x110000]
    for (first, name), end in zip(classes.RANGES, ends):
        table[first:end] = number[name]
    return table


def group_of(text):
    """Returns the name of the group in which a text is weighted and reported."""
    kind = text["kind"]
    return "random files" if kind.startswith("random") else f"{kind}, {text['form']}"


def weights_of_chunks(texts, text_of, fitted):
    """Returns the weights of the chunks. All kinds weigh the same, except for hard ones, which weigh half as much, and
    random files, which together weigh as much as twenty kinds, because sessions contain files like them."""
    groups = [group_of(texts[index]) for index in text_of]
    sizes = collections.Counter(group for group, is_fitted in zip(groups, fitted) if is_fitted)
    emphasis = lambda group: 20 if group == "random files" else .5 if group.startswith("hard") else 1
    return numpy.array([emphasis(group) / sizes[group] if is_fitted else 0 for group, is_fitted in zip(groups, fitted)])


def solve(matrix, counted, prior, weights, strictness):
    """Returns the weights that minimise the squared relative errors. If an estimate is too low, its error counts
    `strictness` times as much."""
    scale = numpy.sqrt(weights) / counted
    rows = (scipy.sparse.diags(scale) @ matrix).tocsr()
    columns, wanted = rows.T.tocsr(), scale * counted

    def loss(w):
        error, moved = rows @ w - wanted, w - prior
        pull = numpy.where(error < 0, strictness, 1.0) * error
        return pull @ error + 1e-3 * moved @ moved, 2 * (columns @ pull) + 2e-3 * moved

    limits = [(0, 255 / UNIT)] * len(prior)
    options = {"maxiter": 400, "maxcor": 20, "maxfun": 500}
    return scipy.optimize.minimize(loss, numpy.clip(prior, 0, 3.9), jac=True, method="L-BFGS-B", bounds=limits, options=options).x


def fit(cache, texts):
    """Returns the table of each family: the index in `LEVELS` of each weight."""
    pairs = Pairs(texts)
    matrix = pairs.matrix()
    fitted = pairs.fitted
    hard = numpy.array([texts[index]["kind"].startswith(("declaration", "hard")) for index in pairs.text_of])
    strictness = numpy.where(hard, 3 * UNDER, UNDER)[fitted]
    counts, priors = {}, {}
    for name in counters.counters(cache):
        starts = counters.starts_of(cache, name).astype(float) * counters.SCALE.get(name, 1)
        counts[name], priors[name] = numpy.add.reduceat(starts, pairs.begins), pairs.prior(starts)
    counts["unknown"] = numpy.max(list(counts.values()), axis=0)
    priors["unknown"] = numpy.max(list(priors.values()), axis=0)
    tables = {}
    for name in counts:
        weights = solve(matrix[fitted], counts[name][fitted], priors[name], pairs.weights[fitted], strictness)
        tables[name] = levels((weights * SLACK).reshape(-1, pairs.columns), pairs)
        rounded = numpy.array(LEVELS)[tables[name]].ravel() / UNIT
        error = (matrix[~fitted] @ rounded).sum() / counts[name][~fitted].sum() - 1
        print(f"{name}: {error:+.1%} on the other half", flush=True)
    return tables


def levels(weights, pairs):
    for name, floor in FLOORS.items():
        column = pairs.names.index(name)
        weights[:, column] = numpy.maximum(weights[:, column], floor)
    units = weights * UNIT
    newline = pairs.groups[pairs.names.index("newline")]
    least = numpy.zeros_like(units)
    # The first character is weighed as if after a line feed. A text of one character must not count as nothing.
    least[newline] = 1
    least[newline, pairs.names.index("space")] = 0
    return numpy.abs(numpy.maximum(units, least)[:, :, None] - numpy.array(LEVELS)).argmin(axis=2).clip(least.astype(int))


def write(path, tables):
    """Writes the classes and the tables as a Rust file."""
    names, groups = classes.numbered()
    ascii_names = classes.ascii_names()
    number = {name: index for index, name in enumerate(names)}
    letter = lambda level: chr(35 + level + (35 + level >= 92))
    listed = lambda values: ", ".join(map(str, values))
    out = ["//! Classes of characters, and the weights of pairs of them. Generated by `scripts/dev/accuracy fit`.", "",
           f"pub(super) const CLASSES: usize = {len(names)};", f"pub(super) const GROUPS: usize = {max(groups) + 1};",
           "/// The weights that the letters of the tables stand for, in units of 1/64 token.",
           f"pub(super) const LEVELS: [u8; {len(LEVELS)}] = [{listed(LEVELS)}];", "",
           "/// The class of each ASCII character.",
           f"pub(super) const ASCII: [u8; 128] = [{listed(number[name] for name in ascii_names)}];", "",
           "/// The first character of each range beyond ASCII, and its class.",
           f"pub(super) const RANGES: [(u32, u8); {len(classes.RANGES)}] = ["]
    out += [f"    (0x{first:x}, {number[name]})," for first, name in classes.RANGES]
    out += ["];", "", "/// The group of each class. A weight depends on the group of the character before.",
            f"pub(super) const GROUP: [u8; CLASSES] = [{listed(groups)}];", "",
            "/// The weights of a family: a row for each group, a character for each class.",
            "pub(super) type Text = [&'static str; GROUPS];", ""]
    for name, table in tables.items():
        out += [f"pub(super) const {name.upper()}: Text = ["]
        out += [f'    r#"{"".join(map(letter, row))}"#,' for row in table]
        out += ["];", ""]
    path.write_text("\n".join(out))
