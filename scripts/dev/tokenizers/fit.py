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
UNDER_UNKNOWN = 60
"""The same for an unknown model, whose estimate is compared with the largest of all families."""
SLACK = 1.05
"""The factor by which fitted weights are raised: most texts are then estimated a little too high."""
LEAST = 4
"""The minimum weight in units. Without it, some pairs of characters that often occur within a token, such as `ev` and `ve`,
would cost nothing, and neither would a long text of them."""
AFTER_ITSELF = {**dict.fromkeys(["space", "newline", *"#*-./=_"], 1), **dict.fromkeys(classes.LOWER, 8)}
"""The minimum weights of characters after the same character, as in `least_for_repeated` of `src/estimate/text.rs`. Tokens
hold long runs of some signs, but only short ones of letters."""
FLOORS = {"old scripts": 2.6, "astral": 3.0, "arabic other": 2.4, "rare cjk": 2.2}
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
    table[classes.rare_cjk()] = number["rare cjk"]
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


def solve(matrix, counted, prior, weights, strictness, least, most=255 / UNIT):
    """Returns the weights between `least` and `most` that minimise the squared relative errors. If an estimate is too
    low, its error counts `strictness` times as much."""
    scale = numpy.sqrt(weights) / counted
    rows = (scipy.sparse.diags(scale) @ matrix).tocsr()
    columns, wanted = rows.T.tocsr(), scale * counted

    def loss(w):
        error, moved = rows @ w - wanted, w - prior
        pull = numpy.where(error < 0, strictness, 1.0) * error
        return pull @ error + 1e-3 * moved @ moved, 2 * (columns @ pull) + 2e-3 * moved

    limits = scipy.optimize.Bounds(least, most)
    begin = numpy.clip(prior, least, numpy.maximum(least, 3.9))
    options = {"maxiter": 400, "maxcor": 20, "maxfun": 500}
    return scipy.optimize.minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=limits, options=options).x


def fit(cache, texts):
    """Returns the table of each family: the index in `LEVELS` of each weight."""
    pairs = Pairs(texts)
    matrix = pairs.matrix()
    fitted = pairs.fitted
    hard = numpy.array([texts[index]["kind"].startswith(("declaration", "hard")) for index in pairs.text_of])
    strictness = numpy.where(hard, 3 * UNDER, UNDER)[fitted]
    least = least_of(pairs)
    tables = {}
    for name in counters.counters(cache):
        starts = counters.starts_of(cache, name).astype(float) * counters.SCALE.get(name, 1)
        counts, prior = numpy.add.reduceat(starts, pairs.begins), pairs.prior(starts)
        weights = solve(matrix[fitted], counts[fitted], prior, pairs.weights[fitted], strictness, least / UNIT / SLACK)
        tables[name] = levels((weights * SLACK).reshape(-1, pairs.columns), pairs, least)
        error = (matrix[~fitted] @ weights_of(tables[name])).sum() / counts[~fitted].sum() - 1
        print(f"{name}: {error:+.1%} on the other half", flush=True)
    tables["unknown"] = for_unknown(pairs, matrix, tables)
    return tables


def for_unknown(pairs, matrix, tables):
    """Returns the table for an unknown model, whose weights are scaled by that of newer Claude. The estimate of almost every
    text is at least the largest of all families, and not much more: no weight is below that for newer Claude, and the weight
    of a character after one of its own class is the largest, because many texts consist of such pairs. The other weights
    are fitted."""
    families = [*map(weights_of, tables.values()), weights_of(tables["claude"]) * counters.NEWER_CLAUDE]
    largest, least = numpy.max(families, axis=0), families[-1].copy()
    same = pairs.groups * pairs.columns + numpy.arange(pairs.columns)
    least[same] = largest[same]
    fitted = pairs.fitted
    counts = numpy.max([matrix[fitted] @ weights for weights in families], axis=0)
    weights = solve(matrix[fitted], counts, largest, pairs.weights[fitted], UNDER_UNKNOWN, least, largest)
    table = levels((weights / counters.NEWER_CLAUDE).reshape(-1, pairs.columns), pairs, numpy.zeros(pairs.size))
    return numpy.maximum(table, tables["claude"])


def weights_of(table):
    """Returns the weights of a table of indices in `LEVELS`, in tokens."""
    return numpy.array(LEVELS)[table].ravel() / UNIT


def least_of(pairs):
    """Returns the minimum weight of each pair, in units."""
    least = numpy.full((pairs.size // pairs.columns, pairs.columns), float(LEAST))
    for name, units in AFTER_ITSELF.items():
        column = pairs.names.index(name)
        least[pairs.groups[column], column] = units
    return least.ravel()


def levels(weights, pairs, least):
    """Returns the index in `LEVELS` of each weight."""
    for name, floor in FLOORS.items():
        column = pairs.names.index(name)
        weights[:, column] = numpy.maximum(weights[:, column], floor)
    units = numpy.maximum(weights * UNIT, least.reshape(weights.shape))
    return numpy.abs(units[:, :, None] - numpy.array(LEVELS)).argmin(axis=2)


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
    rare, count = classes.rare_cjk(), -(-(classes.CJK[1] - classes.CJK[0]) // 64)
    bits = sum(1 << code - classes.CJK[0] for code in rare)
    words = [f"0x{bits >> 64 * index & 2 ** 64 - 1:016x}" for index in range(count)]
    out += ["];", "", "/// The first of the characters whose bits are in [`RARE`].",
            f"pub(super) const RARE_FROM: u32 = 0x{classes.CJK[0]:x};",
            "/// The class of the characters whose bits are set in [`RARE`].",
            f"pub(super) const RARE_CLASS: u8 = {number['rare cjk']};",
            "/// A bit for each Chinese character and Korean syllable that is rare.",
            f"pub(super) static RARE: [u64; {count}] = ["]
    out += ["    " + ", ".join(words[index:index + 5]) + "," for index in range(0, count, 5)]
    out += ["];", "", "/// The group of each class. A weight depends on the group of the character before.",
            f"pub(super) const GROUP: [u8; CLASSES] = [{listed(groups)}];", "",
            "/// The weights of a family: a row for each group, a character for each class.",
            "pub(super) type Text = [&'static str; GROUPS];", ""]
    for name, table in tables.items():
        out += [f"pub(super) const {name.upper()}: Text = ["]
        out += [f'    r#"{"".join(map(letter, row))}"#,' for row in table]
        out += ["];", ""]
    path.write_text("\n".join(out))
