"""The encodings of `gompfs grep --encoding`: the names and the tables of the WHATWG encoding standard.

The tables are made of Python's codecs. `_CHANGES` names the byte sequences that the standard decodes otherwise.
"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Iterable

from gompfs.errors import OptionError
from gompfs.light_types import NamedTuple

_NONE = 0
_LEAD = 0x200000
_SHIFT_OF_FIRST = 24
_LABELS = {
    "utf-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf8 x-unicode20utf8",
    "utf-16be": "unicodefffe",
    "utf-16le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16",
    "ibm866": "866 cp866 csibm866",
    "iso-8859-2": "csisolatin2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2",
    "iso-8859-3": "csisolatin3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3",
    "iso-8859-4": "csisolatin4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4",
    "iso-8859-5": "csisolatincyrillic cyrillic iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988",
    "iso-8859-6": "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6-e iso-8859-6-i "
    "iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987",
    "iso-8859-7": "csisolatingreek ecma-118 elot_928 greek greek8 iso-ir-126 iso8859-7 iso88597 iso_8859-7 "
    "iso_8859-7:1987 sun_eu_greek",
    "iso-8859-8": "csiso88598e csisolatinhebrew hebrew iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8 "
    "iso_8859-8:1988 visual csiso88598i iso-8859-8-i logical",
    "iso-8859-10": "csisolatin6 iso-ir-157 iso8859-10 iso885910 l6 latin6",
    "iso-8859-13": "iso8859-13 iso885913",
    "iso-8859-14": "iso8859-14 iso885914",
    "iso-8859-15": "csisolatin9 iso8859-15 iso885915 iso_8859-15 l9",
    "iso-8859-16": "",
    "koi8-r": "cskoi8r koi koi8 koi8_r",
    "koi8-u": "koi8-ru",
    "macintosh": "csmacintosh mac x-mac-roman",
    "windows-874": "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620",
    "windows-1250": "cp1250 x-cp1250",
    "windows-1251": "cp1251 x-cp1251",
    "windows-1252": "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 "
    "iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii x-cp1252",
    "windows-1253": "cp1253 x-cp1253",
    "windows-1254": "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 "
    "x-cp1254",
    "windows-1255": "cp1255 x-cp1255",
    "windows-1256": "cp1256 x-cp1256",
    "windows-1257": "cp1257 x-cp1257",
    "windows-1258": "cp1258 x-cp1258",
    "x-mac-cyrillic": "x-mac-ukrainian",
    "x-user-defined": "",
    "gb18030": "chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk",
    "big5": "big5-hkscs cn-big5 csbig5 x-x-big5",
    "euc-jp": "cseucpkdfmtjapanese x-euc-jp",
    "iso-2022-jp": "csiso2022jp",
    "shift_jis": "csshiftjis ms932 ms_kanji shift-jis sjis windows-31j x-sjis",
    "euc-kr": "cseuckr csksc56011987 iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949",
}
_NAMES = {label: name for name, labels in _LABELS.items() for label in (name, *labels.split())}
_CODECS = {"macintosh": "mac_roman", "windows-874": "cp874", "x-mac-cyrillic": "mac_cyrillic"}
_CODECS |= {"big5": "big5hkscs", "shift_jis": "cp932", "euc-kr": "cp949"}

_CHANGES: dict[str, dict[int, str]] = {
    "koi8-u": {0xAE: "ў", 0xBE: "Ў"},
    "windows-1255": {0xCA: "\u05ba"},
    "gb18030": {
        0x80: "€",
        0xA3A0: "\u3000",
        0xA6D9: "\ufe10\ufe12\ufe11\ufe13\ufe14\ufe15\ufe16",
        0xA6EC: "\ufe17\ufe18",
        0xA6F3: "\ufe19",
        0xA8BC: "ḿ",
        0xFE59: "\u9fb4",
        0xFE61: "\u9fb5",
        0xFE66: "\u9fb6\u9fb7",
        0xFE6D: "\u9fb8",
        0xFE7E: "\u9fb9",
        0xFE90: "\u9fba",
        0xFEA0: "\u9fbb",
    },
    "big5": {
        0x877A: "\u3875\U00021d53\U0002369e\U00026021\u3eec",
        0x87A1: "\U000258de\u3af5竼龗\U00024161\U0002890d\U000231ea\U00020a8a\U0002325e\u430a蒄龖鐯\u4930蘓墖靊鈘秐稲晠"
        "権袝瑌篅枂稬剏遆\u34e6珄\U00025db9瓆\u9fc7垳\u492f呌\u4131\U0002368e堘穲\U00027b65讏\u46ae\U00026e88"
        "\u4181\U00025d99箮\U000224bc\u9fc8\U000224c1\U000224c9\U000224cc\u9fc9蔄\U000235bb\u40b4"
        "\u9fca\u44e1\U0002adff拁灮\u9fcb",
        0x8E69: "箸",
        0x8E6F: "簆",
        0x8E7E: "糎",
        0x8EAB: "緒",
        0x8EB4: "縝",
        0x8ECD: "者",
        0x8ED0: "耨",
        0x8F57: "菁",
        0x8F69: "蒨",
        0x8F6E: "萏",
        0x8FCB: "覦覩",
        0x8FFE: "起",
        0x906D: "都",
        0x907A: "銹",
        0x90DC: "靜",
        0x90F1: "響",
        0x91BF: "鼖",
        0x9244: "蔃",
        0x92AF: "兙兛兝兞",
        0x92C8: "鍮",
        0x92D1: "瑹",
        0x9447: "浧",
        0x94CA: "禛",
        0x95D9: "邗",
        0x9644: "靝",
        0x96ED: "瀞",
        0x96FC: "嬨",
        0x9B76: "爁",
        0x9B78: "矗",
        0x9B7B: "纇",
        0x9BC6: "駖",
        0x9BDE: "釔",
        0x9BEC: "惞",
        0x9BF6: "澶",
        0x9C42: "輶",
        0x9C53: "侻",
        0x9C62: "營",
        0x9C68: "鄄",
        0x9C6B: "鷰",
        0x9C77: "菏",
        0x9CBC: "尐秣",
        0x9CD0: "婧",
        0x9D57: "輋",
        0x9D5A: "筑",
        0x9DC4: "拐",
        0x9EA9: "恢",
        0x9EEF: "痹",
        0x9EFD: "汊",
        0x9F60: "鬮",
        0x9F66: "鼗",
        0x9FCB: "僭",
        0x9FD8: "弌",
        0xA063: "蠏",
        0xA077: "拎",
        0xA0D5: "瑨",
        0xA0DF: "煢",
        0xA0E4: "牐",
        0xA145: "\u2027",
        0xA14E: "\ufe51",
        0xA1C2: "\u00af",
        0xA1E3: "\uff5e",
        0xA1F2: "\u2295\u2299",
        0xA241: "\u2215\ufe68",
        0xA244: "\uffe5",
        0xA246: "\uffe0\uffe1",
        0xA3C0: "\u2400\u2401\u2402\u2403\u2404\u2405\u2406\u2407\u2408\u2409\u240a\u240b\u240c\u240d\u240e"
        "\u240f\u2410\u2411\u2412\u2413\u2414\u2415\u2416\u2417\u2418\u2419\u241a\u241b\u241c\u241d"
        "\u241e\u241f\u2421\u20ac",
        0xC6CF: "廴",
        0xC6D3: "无",
        0xC6D5: "癶",
        0xC6D7: "隶",
        0xC6DE: "\u3003仝",
        0xFA5F: "倩",
        0xFA66: "偽",
        0xFABD: "包",
        0xFAC5: "卄",
        0xFAD5: "卿",
        0xFB48: "嘅",
        0xFBB8: "婷",
        0xFBF3: "幵",
        0xFBF9: "廐",
        0xFC4F: "彘",
        0xFC6C: "悤",
        0xFCB9: "撐",
        0xFCE2: "晴",
        0xFCF1: "杞",
        0xFDB7: "沜渝",
        0xFDBB: "港",
        0xFDF1: "煮",
        0xFE52: "猪",
        0xFE6F: "瑜",
        0xFEAA: "瓩",
        0xFEDD: "砉",
    },
}
"""Texts that begin at a byte sequence and go on with the sequences after it."""
_PRIVATE_QUAD = 7457
"""The number of the sequence of four bytes in GB 18030 that stays in the private use area."""
_NUM_QUADS = 39420


class EncodingTables(NamedTuple):
    """An encoding as `TextEncoding` in native/search has it. The tables are arrays of u32.

    An entry is a code point, 0 if the bytes are not valid, or 0x200000 if the character takes more bytes. Above it,
    the upper 8 bits are a code point, and the lower 24 bits the one after it.
    """

    kind: str
    """utf-8, utf-16le, utf-16be, iso-2022-jp or table."""
    singles: bytes = b""
    """By the first byte: 256."""
    pairs: bytes = b""
    """By the first two bytes: none, or 65536. Those of ISO-2022-JP are the ones of EUC-JP."""
    triples: bytes = b""
    """By the second and the third byte: none, or 65536."""
    quads: bytes = b""
    """By the number of a sequence of four bytes in GB 18030, up to U+FFFF: none, or 39420."""


def encoding_named(label: str) -> str:
    """Returns the name of an encoding in lower case. Raises OptionError if there is none with this label."""
    name = _NAMES.get(label.strip("\t\n\f\r ").lower())
    if name is None:
        raise OptionError(f"unknown encoding: {label}")
    return name


def encoding_names() -> list[str]:
    """Returns all labels."""
    return sorted(_NAMES)


def encoding_tables(label: str) -> EncodingTables:
    """Returns the tables of an encoding. Raises OptionError if there is none with this label."""
    return _tables_of(encoding_named(label))


@functools.cache
def _tables_of(name: str) -> EncodingTables:
    if name in ("utf-8", "utf-16le", "utf-16be"):
        return EncodingTables(name)
    singles = array("I", range(128)) + array("I", [_NONE] * 128)
    if name == "gb18030":
        return _gb18030_tables(singles)
    if name == "euc-jp":
        return _euc_jp_tables(singles)
    if name == "iso-2022-jp":
        return EncodingTables(name, pairs=_tables_of("euc-jp").pairs)
    if name in ("big5", "shift_jis", "euc-kr"):
        return _tables_of_pairs(name, singles)
    if name == "x-user-defined":
        singles[128:] = array("I", range(0xF780, 0xF800))
    else:
        for byte in range(128, 256):
            singles[byte] = _code_of(bytes([byte]), _CODECS.get(name, name))
            if singles[byte] == _NONE and name.startswith("windows") and byte < 0xA0:
                singles[byte] = byte
        _change(singles, name)
    return EncodingTables("table", singles.tobytes())


def _code_of(sequence: bytes, codec: str) -> int:
    try:
        text = sequence.decode(codec)
    except UnicodeDecodeError:
        return _NONE
    codes = [ord(character) for character in text]
    return codes[0] if len(codes) == 1 else codes[0] << _SHIFT_OF_FIRST | codes[1]


def _change(table: array[int], name: str) -> None:
    for begin, text in _CHANGES[name].items() if name in _CHANGES else ():
        if begin < len(table):
            table[begin : begin + len(text)] = array("I", map(ord, text))


def _pairs_of(codec: str, leads: Iterable[int], trails: Iterable[int]) -> array[int]:
    pairs = array("I", [_NONE]) * 0x10000
    trails = list(trails)
    for lead in leads:
        for trail in trails:
            pairs[lead << 8 | trail] = _code_of(bytes([lead, trail]), codec)
    return pairs


def _tables_of_pairs(name: str, singles: array[int]) -> EncodingTables:
    leads = [*range(0x81, 0xFF)]
    if name == "shift_jis":
        leads = [*range(0x81, 0xA0), *range(0xE0, 0xFD)]
        singles[0x80] = 0x80
        singles[0xA1:0xE0] = array("I", range(0xFF61, 0xFFA0))
    for lead in leads:
        singles[lead] = _LEAD
    pairs = _pairs_of(_CODECS[name], leads, range(0x40, 0xFF) if name != "euc-kr" else range(0x41, 0xFF))
    _change(pairs, name)
    return EncodingTables("table", singles.tobytes(), pairs.tobytes())


def _euc_jp_tables(singles: array[int]) -> EncodingTables:
    """The characters of two bytes are those of Shift_JIS."""
    rows = range(0xA1, 0xFF)
    for lead in (0x8E, 0x8F, *rows):
        singles[lead] = _LEAD
    pairs, triples = array("I", [_NONE]) * 0x10000, array("I", [_NONE]) * 0x10000
    for byte in range(0xA1, 0xE0):
        pairs[0x8E << 8 | byte] = 0xFF61 + byte - 0xA1
    for first in rows:
        pairs[0x8F << 8 | first] = _LEAD
        for second in rows:
            row, column = divmod((first - 0xA1) * 94 + second - 0xA1, 188)
            lead, trail = row + (0x81 if row < 0x1F else 0xC1), column + (0x40 if column < 0x3F else 0x41)
            pairs[first << 8 | second] = _code_of(bytes([lead, trail]), "cp932")
            triples[first << 8 | second] = _code_of(bytes([0x8F, first, second]), "euc_jp")
    triples[0xA2B7] = 0xFF5E
    return EncodingTables("table", singles.tobytes(), pairs.tobytes(), triples.tobytes())


def _gb18030_tables(singles: array[int]) -> EncodingTables:
    leads = range(0x81, 0xFF)
    for lead in leads:
        singles[lead] = _LEAD
    pairs = _pairs_of("gb18030", leads, range(0x40, 0xFF))
    _change(pairs, "gb18030")
    singles[0x80] = ord(_CHANGES["gb18030"][0x80])
    pairs[0x80] = _NONE
    for lead in leads:
        for digit in range(0x30, 0x3A):
            pairs[lead << 8 | digit] = _LEAD
    quads = array("I", [_NONE]) * _NUM_QUADS
    for number in range(_NUM_QUADS):
        rest, fourth = divmod(number, 10)
        rest, third = divmod(rest, 126)
        first, second = divmod(rest, 10)
        quads[number] = _code_of(bytes([first + 0x81, second + 0x30, third + 0x81, fourth + 0x30]), "gb18030")
    quads[_PRIVATE_QUAD] = 0xE7C7
    return EncodingTables("table", singles.tobytes(), pairs.tobytes(), quads=quads.tobytes())
