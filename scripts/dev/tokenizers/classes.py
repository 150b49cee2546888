"""The classes of characters, and groups of these classes. The weight of a character depends on its own class and on
the group of the character before it."""

LOWER = "abcdefghijklmnopqrstuvwxyz"
SIGNS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

RANGES = [
    # The first code point of each range and the name of its class. A range ends where the next one begins. A class may
    # have several ranges.
    (0x80, "old scripts"), (0xA0, "latin signs"), (0xC0, "accents upper"), (0xD7, "latin signs"), (0xD8, "accents upper"),
    (0xDF, "accents"), (0xF7, "latin signs"), (0xF8, "accents"), (0x100, "latin a"), (0x180, "latin b"),
    (0x250, "ipa"), (0x300, "marks"), (0x370, "greek"), (0x3AC, "greek lower"), (0x3CF, "greek"),
    (0x400, "cyrillic upper"), (0x430, "cyrillic vowels"), (0x431, "cyrillic"), (0x435, "cyrillic vowels"), (0x436, "cyrillic"),
    (0x438, "cyrillic vowels"), (0x439, "cyrillic"), (0x43E, "cyrillic vowels"), (0x43F, "cyrillic"),
    (0x443, "cyrillic vowels"), (0x444, "cyrillic"), (0x449, "cyrillic soft"), (0x450, "cyrillic south"),
    (0x451, "cyrillic soft"), (0x452, "cyrillic south"), (0x454, "cyrillic west"), (0x455, "cyrillic south"),
    (0x456, "cyrillic west"), (0x458, "cyrillic south"), (0x45E, "cyrillic west"), (0x45F, "cyrillic south"),
    (0x460, "cyrillic far"), (0x490, "cyrillic west"), (0x492, "cyrillic far"), (0x4C0, "palochka"), (0x4C1, "cyrillic far"),
    (0x4CF, "palochka"), (0x4D0, "cyrillic far"), (0x530, "armenian"), (0x590, "hebrew points"), (0x5D0, "hebrew"),
    (0x600, "arabic other"), (0x621, "arabic"), (0x627, "arabic vowels"), (0x628, "arabic"), (0x62A, "arabic common"),
    (0x62B, "arabic"), (0x631, "arabic common"), (0x632, "arabic"), (0x644, "arabic common"), (0x647, "arabic"),
    (0x648, "arabic vowels"), (0x649, "arabic"), (0x64A, "arabic vowels"), (0x64B, "arabic points"), (0x660, "arabic other"),
    (0x67E, "persian"), (0x67F, "arabic other"), (0x686, "persian"), (0x687, "arabic other"), (0x6A9, "persian"),
    (0x6AA, "arabic other"), (0x6AF, "persian"), (0x6B0, "arabic other"), (0x6CC, "persian"), (0x6CD, "arabic other"),
    (0x700, "old scripts"), (0x900, "devanagari"),
    (0x980, "bengali"), (0xA00, "gurmukhi"), (0xA80, "gujarati"), (0xB00, "odia"), (0xB80, "tamil"), (0xC00, "telugu"),
    (0xC80, "kannada"), (0xD00, "malayalam"), (0xD80, "sinhala"), (0xE00, "thai"), (0xE80, "lao"), (0xF00, "tibetan"),
    (0x1000, "burmese"), (0x10A0, "georgian"), (0x1100, "old scripts"), (0x1200, "ethiopic"), (0x13A0, "old scripts"),
    (0x1780, "khmer"), (0x1800, "old scripts"), (0x1E00, "latin c"), (0x1F00, "greek far"), (0x2000, "spaces"),
    (0x2010, "dashes and quotes"), (0x2028, "spaces"), (0x2030, "latin signs"), (0x205F, "spaces"), (0x2070, "letterlike"),
    (0x20A0, "letterlike"), (0x2160, "numerals"), (0x2190, "arrows"), (0x2200, "mathematics"), (0x2300, "technical"),
    (0x2500, "rules"), (0x2502, "box"), (0x2550, "rules"), (0x2551, "box"), (0x2580, "shapes"), (0x2600, "symbols"), (0x27C0, "mathematics"), (0x2800, "braille"),
    (0x2900, "mathematics"), (0x2B00, "symbols"), (0x2C00, "old scripts"), (0x2E80, "rare cjk"), (0x3000, "cjk signs"),
    (0x3040, "hiragana"), (0x30A0, "katakana"), (0x3100, "old scripts"), (0x3200, "rare cjk"), (0x4E00, "han"),
    (0xA000, "old scripts"), (0xAC00, "hangul"), (0xD7A4, "old scripts"), (0xE000, "private"), (0xF900, "rare cjk"),
    (0xFB00, "old scripts"), (0xFE00, "selectors"), (0xFE10, "old scripts"), (0xFF00, "wide signs"),
    (0xFF21, "wide latin"), (0xFF5B, "wide signs"), (0xFF66, "narrow katakana"), (0xFFA0, "wide signs"),
    (0xFFFD, "replacement"), (0xFFFE, "private"), (0x10000, "astral"), (0x1D400, "mathematical letters"),
    (0x1D800, "astral"), (0x1F000, "emoji"), (0x1F3FB, "skin tones"), (0x1F400, "emoji"), (0x1FB00, "astral"),
    (0x20000, "rare cjk"), (0x40000, "private"),
]

CJK = (0x4E00, 0xD7A4)
"""The range of the characters that are "han" or "hangul" if they are common, and "rare cjk" if not."""


def common_cjk():
    """Returns the characters that most texts in Chinese, Japanese and Korean consist of: the first levels of GB 2312, Big5
    and JIS X 0208, which were chosen by frequency, and the syllables of KS X 1001. Tokenizers have tokens for most of
    these, and split most others into two or three."""
    rows = lambda first, last: ((0xA0 + row, 0xA0 + cell) for row in range(first, last + 1) for cell in range(1, 95))
    cells = [*range(0x40, 0x7F), *range(0xA1, 0xFF)]
    big5 = ((lead, cell) for lead in range(0xA4, 0xC7) for cell in cells)
    levels = {"gb2312": rows(16, 55), "big5": big5, "euc_jp": rows(16, 47), "euc_kr": rows(16, 40)}
    texts = (bytes(pair).decode(encoding, "ignore") for encoding, pairs in levels.items() for pair in pairs)
    return {ord(character) for text in texts for character in text if CJK[0] <= ord(character) < CJK[1]}


def rare_cjk():
    """Returns the other characters of the blocks of Chinese characters and Korean syllables, in order."""
    common = common_cjk()
    return [code for first, end in ((0x4E00, 0xA000), (0xAC00, 0xD7A4)) for code in range(first, end) if code not in common]


CAPITALS = ("AEIOU", "BCDGPT", "FHKLMNRSV", "JQWXYZ")

BEFORE = {
    # The classes of each group. A class that is not listed is a group of its own.
    "open": "[{", "close": "]}", "other signs": "!$%&+?@^`|~",
    "latin": ["accents", "accents upper", "latin a", "latin b", "latin c", "ipa", "marks"],
    "greek": ["greek", "greek lower", "greek far"],
    "cyrillic": ["cyrillic", "cyrillic upper", "palochka"],
    "cyrillic far": ["cyrillic far", "cyrillic south", "cyrillic west"],
    "cyrillic vowels": ["cyrillic vowels", "cyrillic soft"],
    "hebrew": ["hebrew", "hebrew points"],
    "arabic": ["arabic", "arabic points", "arabic other", "persian"],
    "indic": ["devanagari", "bengali", "gurmukhi", "gujarati", "odia", "tamil", "telugu", "kannada", "malayalam", "sinhala"],
    "eastern": ["thai", "lao", "tibetan", "burmese", "khmer"],
    "rare": ["armenian", "georgian", "ethiopic", "old scripts", "private", "astral"],
    "kana": ["hiragana", "katakana", "narrow katakana"],
    "han": ["han", "rare cjk"],
    "wide": ["cjk signs", "wide signs", "wide latin"],
    "signs": ["latin signs", "letterlike", "dashes and quotes", "spaces", "technical", "numerals"],
    "symbols": ["arrows", "mathematics", "mathematical letters", "symbols", "emoji", "skin tones", "selectors", "braille"],
    "box": ["box", "shapes"],
}


def ascii_names():
    """Returns the name of the class of each ASCII character."""
    names = ["control"] * 128
    for c in LOWER:
        names[ord(c)] = c
    for letters in CAPITALS:
        for c in letters:
            names[ord(c)] = letters
    for c in "0123456789":
        names[ord(c)] = "digit"
    for c in SIGNS:
        names[ord(c)] = c
    names[ord(" ")], names[ord("\n")], names[ord("\t")] = "space", "newline", "tab"
    return names


def numbered():
    """Returns the names of the classes, and the group of each class as a number."""
    names = list(dict.fromkeys(ascii_names() + [name for _, name in RANGES]))
    group_of = {name: group for group, members in BEFORE.items() for name in members}
    groups = list(dict.fromkeys(group_of.get(name, name) for name in names))
    return names, [groups.index(group_of.get(name, name)) for name in names]
