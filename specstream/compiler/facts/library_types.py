"""What functions, methods and attributes give, of Python and its standard library.

Python says it nowhere while it runs, so it is written down: one table of functions by their
modules, one of classes with their methods and attributes. A type is written as an annotation.
What depends on the arguments is in the functions below. What is in neither is of type ``ANY``.
"""

from __future__ import annotations

import ast
import collections
import enum
import functools
import operator
import re
import sys
from collections.abc import Callable
from typing import Any

from specstream.compiler.facts import value_types as of
from specstream.compiler.facts.value_types import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    NEVER,
    NONE,
    STR,
    Type,
    element,
    join,
    list_of,
    optional,
    required,
    tuple_of,
)
from specstream.compiler.language.parsing import parse

__all__ = [
    *("attribute", "constant", "function", "functions_of", "groups_found", "method"),
    "operation",
]

# A line says what is of one type; names are methods, behind a dot attributes.
_CLASSES = """
str
    str: lower upper strip lstrip rstrip title capitalize casefold swapcase replace removeprefix
    str: removesuffix zfill ljust rjust center expandtabs translate format join format_map __str__
    bool: startswith endswith isdigit isdecimal isnumeric isalpha isalnum isspace islower isupper
    bool: istitle isidentifier isascii isprintable
    int: find rfind index rindex count __len__
    list[str]: split rsplit splitlines
    tuple[str, str, str]: partition rpartition
    bytes: encode
bytes
    str: decode hex
    int: find rfind index rindex count
    bool: startswith endswith isdigit isalpha isalnum
    bytes: lower upper strip lstrip rstrip replace join removeprefix removesuffix
    list[bytes]: split rsplit
int
    int: bit_length bit_count conjugate .real .imag .numerator .denominator
    bytes: to_bytes
    tuple[int, int]: as_integer_ratio
    str: __str__ __repr__
float
    bool: is_integer
    str: hex __str__ __repr__
    tuple[int, int]: as_integer_ratio
    float: .real .imag
datetime
    int: weekday isoweekday toordinal .year .month .day .hour .minute .second .microsecond
    int: .nanosecond .fold
    str: isoformat strftime ctime
    str | None: tzname
    float: timestamp
    datetime: replace astimezone
    date: date
    time: time timetz
    timedelta | None: utcoffset dst
    tuple[int, int, int]: isocalendar
    struct_time: timetuple utctimetuple
date
    int: weekday isoweekday toordinal .year .month .day
    str: isoformat strftime ctime
    date: replace
    tuple[int, int, int]: isocalendar
    struct_time: timetuple
time
    int: .hour .minute .second .microsecond .fold
    str: isoformat strftime
    time: replace
timedelta
    float: total_seconds
    int: .days .seconds .microseconds
struct_time
    int: .tm_year .tm_mon .tm_mday .tm_hour .tm_min .tm_sec .tm_wday .tm_yday .tm_isdst
Match
    int: start end .pos .endpos
    int | None: .lastindex
    str | None: .lastgroup
    str: expand .string
    tuple[int, int]: span
    dict[str, str | None]: groupdict
    Pattern: .re
Pattern
    Match | None: match search fullmatch
    str: sub .pattern
    tuple[str, int]: subn
    list[Match]: finditer
    list[str | None]: split
    int: .groups
ParseResult SplitResult
    str: geturl .scheme .netloc .path .params .query .fragment
    str | None: .hostname .username .password
    int | None: .port
IPv4Address IPv6Address
    bool: .is_private .is_global .is_loopback .is_multicast .is_reserved .is_link_local
    bool: .is_unspecified .is_site_local
    int: .version .max_prefixlen
    str: .compressed .exploded .reverse_pointer
    bytes: .packed
    IPv4Address | None: .ipv4_mapped .sixtofour
IPv4Network IPv6Network
    bool: overlaps subnet_of supernet_of .is_private .is_global .is_loopback .is_multicast
    int: .version .prefixlen .num_addresses
    str: .compressed .exploded .with_prefixlen .with_netmask
    IPv4Address: .network_address .broadcast_address .netmask .hostmask
UUID
    int | None: .version
    int: .int .time .node .clock_seq .time_low .time_mid .time_hi_version
    str: .hex .urn .variant
    bytes: .bytes .bytes_le
Decimal
    Decimal: quantize normalize copy_abs copy_sign copy_negate sqrt ln log10 exp to_integral_value
    Decimal: to_integral remainder_near max min fma scaleb logb adjusted_exponent
    bool: is_nan is_finite is_infinite is_signed is_zero
    int: adjusted
    str: to_eng_string
    tuple[int, int]: as_integer_ratio
Fraction
    int: .numerator .denominator
    Fraction: limit_denominator
    tuple[int, int]: as_integer_ratio
HASH
    str: hexdigest .name
    bytes: digest
    int: .digest_size .block_size
SequenceMatcher
    float: ratio quick_ratio real_quick_ratio
list
    int: index count
tuple
    int: index count .year .week .weekday
"""

_FUNCTIONS = """
builtins
    int: len ord
    bool: isinstance any all callable issubclass hasattr
    str: repr ascii chr hex oct bin format
re
    Match | None: match search fullmatch
    str: sub escape
    tuple[str, int]: subn
    Pattern: compile
    list[Match]: finditer
    list[str | None]: split
datetime
    datetime: datetime.fromisoformat datetime.strptime datetime.fromtimestamp datetime.combine
    datetime: datetime.utcfromtimestamp datetime.fromordinal datetime.fromisocalendar
    date: date.fromisoformat date.fromtimestamp date.fromordinal date.fromisocalendar
    time: time.fromisoformat
urllib.parse
    ParseResult: urlparse
    SplitResult: urlsplit
    str: quote quote_plus unquote unquote_plus urljoin urlencode urlunparse urlunsplit
    dict[str, list[str]]: parse_qs
    list[tuple[str, str]]: parse_qsl
    bytes: unquote_to_bytes quote_from_bytes
ipaddress
    IPv4Address: ip_address
    IPv4Network: ip_network
zlib
    int: crc32 adler32
    bytes: compress decompress
binascii
    int: crc32 crc_hqx
    bytes: hexlify unhexlify b2a_hex a2b_hex b2a_base64 a2b_base64
base64
    bytes: b64encode b64decode urlsafe_b64encode urlsafe_b64decode standard_b64encode b16encode
    bytes: standard_b64decode b32encode b32decode b16decode b85encode b85decode a85encode a85decode
hashlib
    HASH: md5 sha1 sha224 sha256 sha384 sha512 blake2b blake2s sha3_224 sha3_256 sha3_384 sha3_512
    HASH: new
    bytes: pbkdf2_hmac scrypt
hmac
    HASH: new
    bytes: digest
    bool: compare_digest
unicodedata
    str: normalize category name lookup bidirectional east_asian_width decomposition
    int: combining mirrored
    bool: is_normalized
html
    str: escape unescape
json
    str: dumps
string
    str: capwords
textwrap
    str: shorten fill dedent indent
    list[str]: wrap
shlex
    list[str]: split
    str: quote join
calendar
    bool: isleap
    int: weekday leapdays timegm
    tuple[int, int]: monthrange
    list[str]: month_name month_abbr day_name day_abbr
bisect
    int: bisect bisect_left bisect_right
statistics
    float: fmean geometric_mean correlation covariance
    list[float]: quantiles
difflib
    list[str]: get_close_matches
fnmatch
    bool: fnmatch fnmatchcase
    list[str]: filter
posixpath
    str: basename dirname join normpath commonprefix
    tuple[str, str]: split splitext
    bool: isabs
uuid
    UUID: uuid3 uuid5
colorsys
    tuple[float, float, float]: rgb_to_hsv hsv_to_rgb rgb_to_hls hls_to_rgb rgb_to_yiq yiq_to_rgb
struct
    bytes: pack
    int: calcsize
math
    int: floor ceil trunc gcd lcm isqrt comb perm factorial
    bool: isnan isinf isfinite isclose
locale
    float: atof
    int: atoi
keyword
    bool: iskeyword
email.utils
    tuple[str, str]: parseaddr
    str: formataddr
    datetime: parsedate_to_datetime
operator
    bool: eq ne lt le gt ge contains not_ truth
"""


def _written(node: ast.expr) -> Type:
    """A type of the tables."""
    match node:
        case ast.Constant(value=None):
            return NONE
        case ast.Name(id=name):
            return Type(name)
        case ast.BinOp(left=left, right=right):
            return join([_written(left), _written(right)])
        case ast.Subscript(value=ast.Name(id=name), slice=inside):
            parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
            inner = tuple(map(_written, parts))
            return Type(name, inner[::-1] if name == "dict" else inner)
    raise ValueError(ast.dump(node))


def _read(text: str) -> dict[str, dict[str, Type]]:
    """A table: of each owner, by their names, what its members give."""
    found: dict[str, dict[str, Type]] = {}
    owners: list[str] = []
    for line in text.strip().splitlines():
        if not line.startswith(" "):
            owners = line.split()
            continue
        written, _, names = line.partition(": ")
        given = _written(parse(written.strip(), mode="eval").body)
        for owner in owners:
            found.setdefault(owner, {}).update(dict.fromkeys(names.split(), given))
    return found


@functools.cache
def _classes() -> dict[str, dict[str, Type]]:
    return _read(_CLASSES)


@functools.cache
def _functions() -> dict[str, dict[str, Type]]:
    return _read(_FUNCTIONS)


_by_value: dict[Any, Type] = {}
_constants: dict[int, Type] = {}
_met: set[str] = set()


def _meet_modules() -> None:
    """Looks the functions up of modules that the program has imported."""
    for name, members in _functions().items():
        module = sys.modules.get(name)
        if module is None or name in _met:
            continue
        _met.add(name)
        for member, given in members.items():
            try:
                value = operator.attrgetter(member)(module)
            except AttributeError:  # another version of Python
                continue
            if callable(value):
                _by_value[value] = given
            else:
                _constants[id(value)] = given


def functions_of(module: str, given: Type) -> frozenset[str]:
    """The names of a module's functions that give one type, whatever they are called with.

    >>> sorted(functions_of("bisect", INT))
    ['bisect', 'bisect_left', 'bisect_right']
    """
    return frozenset(name for name, one in _functions()[module].items() if one == given)


def constant(value: Any) -> Type:
    """The type of a constant of a library's module, or of another value."""
    _meet_modules()
    return _constants.get(id(value)) or of.of_value(value)


def method(owner: Type, name: str, arguments: list[ast.expr], given: list[Type]) -> Type:
    """What a method gives, of these arguments and their types."""
    owner = required(owner)
    if owner.name == "Match" and name in ("group", "__getitem__"):
        if len(arguments) > 1:
            return tuple_of(*[optional(STR)] * len(arguments))
        # Group 0 is the whole; another may not have taken part.
        whole = not arguments or (
            isinstance(arguments[0], ast.Constant) and arguments[0].value == 0
        )
        return STR if whole else optional(STR)
    if owner.name == "Match" and name == "groups":
        return list_of(optional(STR) if not given else join([STR, *given]))
    if owner.name == "dict":
        return _of_dict(owner, name, given)
    if owner.name == "list" and name in ("pop", "popleft"):
        return owner.of[0]
    if owner.name == "list" and name in (
        ["copy", "union", "intersection", "difference", "symmetric_difference"]
    ):
        return owner
    if owner.name == "IPv6Address" and name == "packed":
        return ANY
    return _classes().get(owner.name, {}).get(name, ANY)


def _of_dict(owner: Type, name: str, given: list[Type]) -> Type:
    value, key = owner.of
    if name == "get":
        return join([value, *(given[1:2] or [NONE])])
    if name == "pop":
        return join([value, *given[1:2]])
    if name == "setdefault":
        return join([value, *(given[1:2] or [NONE])])
    if name == "most_common":
        return list_of(tuple_of(key, value))
    parts = {"items": tuple_of(key, value), "keys": key, "values": value, "elements": key}
    if name in parts:
        return list_of(parts[name])
    return owner if name == "copy" else value if name == "total" else ANY


def attribute(owner: Type, name: str) -> Type:
    """What an attribute is."""
    owner = required(owner)
    if owner.cls is None:
        return _classes().get(owner.name, {}).get(f".{name}", ANY)
    if issubclass(owner.cls, enum.Enum):
        # All that it can be is there.
        if name == "name":
            return STR
        values = [getattr(one, name, ...) for one in owner.cls]
        return ANY if ... in values else join(map(of.of_value, values))
    fields: tuple[str, ...] = getattr(owner.cls, "_fields", ())
    hint = of.hints_of(owner.cls).get(name)
    if hint is not None:
        return of.of_hint(hint)
    if name in fields:
        return owner.of[fields.index(name)] if len(owner.of) == len(fields) else ANY
    return ANY


def function(value: Any, given: list[Type]) -> Type:
    """What a function or class gives that is not the user's own; for None among ``given`` it
    raises."""
    _meet_modules()
    try:
        known = _by_value.get(value)
    except TypeError:  # what cannot be hashed
        return ANY
    if known is not None:
        return known
    rule = _RULES.get(value)
    if rule is not None:
        return rule(given)
    if isinstance(value, type):
        return _result_of_class(value, given)
    module, name = getattr(value, "__module__", ""), getattr(value, "__name__", "")
    if module == "statistics":
        return _of_statistics(name, given)
    if module == "unicodedata" and name in ("digit", "decimal", "numeric"):
        return join([FLOAT if name == "numeric" else INT, *given[1:]])
    if module == "math":
        parts = {"modf": tuple_of(FLOAT, FLOAT), "frexp": tuple_of(FLOAT, INT), "prod": ANY}
        return parts.get(name, FLOAT)
    return _of_itertools(name, given) if module == "itertools" else ANY


def _result_of_class(cls: type, given: list[Type]) -> Type:
    """The type of what a class of Python's library makes: ``Counter(...)``, ``dict(...)``."""
    first = given[0] if given else NEVER
    if issubclass(cls, collections.Counter):
        return of.dict_of(INT, first.of[-1] if first.name == "dict" else element(first))
    if issubclass(cls, list | set | frozenset | collections.deque):
        return list_of(element(first) if given else NEVER)
    if issubclass(cls, dict):
        if cls is not dict and not issubclass(cls, collections.OrderedDict):
            return of.dict_of(NEVER, NEVER)
        if not given or first.name == "dict":
            return first if given else of.dict_of(NEVER, NEVER)
        pair = element(first)
        pairs = pair.of if pair.name == "tuple" and len(pair.of) == 2 else (ANY, ANY)
        return of.dict_of(pairs[1], pairs[0])
    if cls is tuple:
        return first if not given or first.name == "tuple" else list_of(element(first))
    made = of.of_class(cls)
    if ANY in made.of and len(made.of) == len(given):  # a named tuple without annotations
        return Type(made.name, tuple(given), cls)
    return made


def _same(given: list[Type]) -> Type:
    return given[0] if given else ANY


def _elements(given: list[Type]) -> Type:
    return list_of(element(given[0])) if given else ANY


def _extremum(given: list[Type]) -> Type:
    if not given:
        return ANY
    return element(given[0]) if len(given) == 1 else join(given)


def _sum(given: list[Type]) -> Type:
    items = [element(given[0]), *given[1:]] if given else []
    found = INT if join(items) == BOOL else join(INT if one == BOOL else one for one in items)
    return INT if found == NEVER else found


def _round(given: list[Type]) -> Type:
    return (given[0] if given[0] != BOOL else INT) if len(given) == 2 else INT


def _zip(given: list[Type]) -> Type:
    return list_of(tuple_of(*map(element, given)))


def _enumerate(given: list[Type]) -> Type:
    return list_of(tuple_of(INT, element(given[0]))) if given else ANY


def _next(given: list[Type]) -> Type:
    return join([element(given[0]), *given[1:]]) if given else ANY


def _divmod(given: list[Type]) -> Type:
    numbers = all(one in (INT, BOOL) for one in given)
    return tuple_of(INT, INT) if numbers else ANY


def _abs(given: list[Type]) -> Type:
    return INT if given == [BOOL] else _same(given)


_RULES: dict[Any, Callable[[list[Type]], Type]] = {
    **dict.fromkeys((sorted, reversed, iter), _elements),
    **dict.fromkeys((min, max), _extremum),
    sum: _sum,
    round: _round,
    abs: _abs,
    zip: _zip,
    enumerate: _enumerate,
    next: _next,
    divmod: _divmod,
    range: lambda given: list_of(INT),
    str.maketrans: lambda given: of.dict_of(ANY, INT),
    int.from_bytes: lambda given: INT,
    dict.fromkeys: lambda given: of.dict_of(
        given[1] if len(given) > 1 else NONE, element(given[0]) if given else ANY
    ),
}


def _of_statistics(name: str, given: list[Type]) -> Type:
    item = element(given[0]) if given else ANY
    if name in ("mode", "median_low", "median_high"):
        return item
    if name == "multimode":
        return list_of(item)
    # Of integers the mean and the median may be either.
    return FLOAT if of.is_number(item) else item


def _of_itertools(name: str, given: list[Type]) -> Type:
    items = list(map(element, given))
    if name in ("chain", "zip_longest", "repeat", "cycle", "islice", "pairwise", "combinations"):
        return list_of(
            {
                "chain": join(items),
                "zip_longest": tuple_of(*map(optional, items)),
                "repeat": given[0],
                "pairwise": tuple_of(*items[:1] * 2),
                "combinations": list_of(items[0]),
            }.get(name, items[0])
        )
    if name in ("takewhile", "dropwhile", "filterfalse") and len(given) == 2:
        return list_of(items[1])
    if name == "product":
        return list_of(tuple_of(*items))
    return list_of(items[0]) if name == "accumulate" and len(given) == 1 else ANY


def groups_found(pattern: Any) -> Type:
    """What ``re.findall`` gives of a pattern; ANY: it is none that is written out."""
    try:
        groups = re.compile(pattern).groups
    except (TypeError, re.error):
        return ANY
    return list_of(STR if groups < 2 else tuple_of(*[STR] * groups))


def operation(op: ast.operator, left: Type, right: Type) -> Type:
    """The type that an operator gives of two values of Python's and its library's types."""
    kinds = (left, right)
    if isinstance(op, ast.Add) and left == right and left in (STR, of.BYTES):
        return left
    if isinstance(op, ast.Add) and left.name == right.name == "tuple":
        return tuple_of(*left.of, *right.of)
    if isinstance(op, ast.Mod) and left == STR:
        return STR
    if isinstance(op, ast.Mult) and STR in kinds and (INT in kinds or BOOL in kinds):
        return STR
    if left.name in ("list", "dict"):
        if isinstance(op, ast.Mult):
            return left
        return join(kinds) if right.name == left.name else ANY
    if isinstance(op, ast.Mult) and right.name == "list":
        return right
    if isinstance(op, ast.Sub) and left == right and left in (of.WHEN, of.DATE):
        return of.DELTA
    if of.DELTA in kinds:
        return _of_timedeltas(op, left, right)
    for exact in ("Decimal", "Fraction"):
        others = {one for one in kinds if one.name != exact}
        if len(others) < 2 and Type(exact) in kinds:
            is_float = exact == "Fraction" and FLOAT in others
            return Type(exact) if others <= {INT, BOOL} else FLOAT if is_float else ANY
    if left.name.startswith("IPv") and right == INT:
        return left
    if not all(of.is_number(one) for one in kinds):
        return ANY
    if isinstance(op, ast.Div) or FLOAT in kinds:
        return FLOAT
    if isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor) and kinds == (BOOL, BOOL):
        return BOOL
    return ANY if isinstance(op, ast.Pow) else INT


def _of_timedeltas(op: ast.operator, left: Type, right: Type) -> Type:
    """The type that operators give of the library's ``timedelta``: sums and shares."""
    if left == right and isinstance(op, ast.Div | ast.FloorDiv):
        return FLOAT if isinstance(op, ast.Div) else INT
    if isinstance(op, ast.Add | ast.Sub):
        return right if left == of.DELTA and isinstance(op, ast.Add) else left
    return of.DELTA
