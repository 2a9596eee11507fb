"""Nothing that a run leaves behind may hold a secret: what looks like one is replaced, in whatever text it stands.

Secrets are known by what stands before them (a name, an option, a place in a URL or in SQL) or by their form. Each
pattern reads a text in time that grows with its length: what repeats is bounded or never tried twice.
"""

import base64
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from mmap import mmap
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote, unquote

HIDDEN = "…"
"""Stands where a secret stood."""

PASSES = 5
"""What is left of one secret may stand as another: it is looked for again until nothing is found, and no longer than
this."""


def _form(pattern: str, flags: int = 0) -> Callable[[], re.Pattern[str]]:
    """A pattern that is compiled when it is first needed: the plugin starts in every session of pytest."""
    return cache(lambda: re.compile(pattern, flags))


_KEY = (
    r"(?:passw(?:or)?d|passphrase|passcode|pwd|secret|token|credential|authorization|cookie|sslkey"
    r"|(?:api|access|account|client|encryption|master|private|secret|shared|signing|ssl|store|tls)[_-]?key"
    r"|session[_-]?(?:id|key)|api[_-]?session|(?:roach|cockroach|dev|enterprise|cluster)[._-]?licen[cs]e)"
)
"""The part of a name that makes it a secret's."""
_KEY_WORDS = ("pass", "pwd", "secret", "token", "credential", "cookie", "key", "session", "auth", "licen")
"""One of these stands in each of them."""
_SHORT = r"(?<![A-Za-z0-9])(?:pass|auth)"  # the same, of names that are that short and end there
_ABOUT = _form(
    r"s?[_-]?(?:type|encryption|method|algorithm|policy|required|enabled|count|length|size|ttl|timeout)s?", re.I
)
"""How a name goes on that tells of a secret but holds none."""
_NAME = _form(rf"(?:{_KEY}(?P<tail>[\w .-]*)|{_SHORT})", re.I)
_OPTION = _form(rf"--?[\w-]{{0,40}}{_KEY}[\w-]*", re.I)
_USER = r"(?!(?:mailto|acct|sip|xmpp|npm|pkg):)[a-z_][\w.+-]{0,63}+:"
_HOST = r"(?:[a-z_(\[]|\d{1,3}\.\d{1,3}\.\d{1,3}\.\d)"
"""How user:password@host begins and how its host does, where no scheme stands before it."""
_LOGIN = ("-u", "--user")  # options before user:password
_NAMING = ("name", "key", "variable", "setting", "option")
"""Names of an entry's name, whose value stands beside it under ``value``."""
_NUMBER = _form(r"[+-]?\d+(?:\.\d+)?")
_NO_SECRET = _form(
    r"true|false|null|none|nil|str|int|bytes|bool|any|optional\b.*|trust|peer|cert|md5|scram-sha-256", re.I
)
"""Values that hide nothing: no value, a type, a method of logging in."""
_AFTER = (
    r"a|again|always|an|and|are|as|at|attempts?|auth|authentication|based|be|been|before|but|by|can|cannot|changed?"
    r"|changes|check|did|do|does|else|empty|encryption|expire[ds]?|failed|fails|failure|fields?|files?|for|from|given"
    r"|had|has|hash(?:es|ing)?|have|here|hidden|if|in|incorrect|instead|into|invalid|is|it|its|known|length|login|may"
    r"|methods?|mismatch|missing|must|needed|needs|never|no|none|not|null|of|on|only|or|out|policy|prompts?|protected"
    r"|rejected|required|requires|reset|rotation|see|set|shown|so|still|stored|than|that|the|then|there|this|to|told|too"
    r"|twice|unknown|unset|until|used|using|valid|was|were|what|when|where|which|will|with|without|wrong"
)
"""Words that follow "password" in a sentence; any other that does is taken for one."""
_NO_WORD = (
    rf"(?!--?[a-z]|\$\d|scram-|md5\b)(?![(\[{{<]?(?:{_AFTER})(?![\w@#%&*+^~$-]))"
    r"(?![\w.-]{1,40}+(?:=(?![=\s]|$)|:(?:\s|$)))(?=[^\s\"'\\…]{0,99}?[^\W_])"
)
"""Stands before a secret of a sentence: no name of a setting, no option, no parameter of a statement, no such word."""
_QUOTED = r'"(?:[^"\\\n]|\\.)*+"|\'(?:[^\'\\\n]|\\.|\'\')*+\''
_ESCAPED = (
    r'(?P<once>\\")(?:[^"\\\n]|\\{4}|\\{3}"|\\{1,3}(?![\\"]))*+(?:\\")?+'
    r"|(?P<escaped>\\{1,8}[\"'])(?:(?!(?<!\\)(?P=escaped))[^\n])*+(?P=escaped)?+"
)
"""Quotes inside a text that was quoted itself: in JSON once, where a backslash is two, or in any other way."""
_DOLLARS = r"\$(?P<tag>\w{0,20})\$[\s\S]{0,1000}?\$(?P=tag)\$"


def _hide_url(found: re.Match[str]) -> str:
    """User and password, up to the last @ before a blank or a quote; of a database or a page all of the query."""
    start, rest = found["start"], found["rest"]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in rest and (":" in authority or "@" in authority):
        rest = f"{HIDDEN}@{rest.rpartition('@')[2]}"
    place, mark, query = rest.partition("?")
    if query and re.match(r"(?:postgres|cockroach|crdb|mysql|http|jdbc)", start, re.I):
        rest = f"{place}{mark}{HIDDEN}"
    return start + rest


def _counts(tail: str | None, key: str, number: str) -> bool:
    """Whether a number under a secret's name is none itself: of ``tokens`` or of ``tokens_found`` it is a count."""
    if tail is None:
        return key.lower() in ("pass", "auth") and len(number) < 5
    return re.fullmatch(r"[_-]?\d*|[\w-]*key", tail, re.I) is None


def _hide_value(found: re.Match[str]) -> str:
    """What stands behind a name; its quotes stay, so that JSON stays JSON."""
    name, tail, value = found["name"], found["tail"], found["value"]
    if tail and _ABOUT().fullmatch(tail):
        return found[0]
    bare = value[0] not in "\"'\\" and not found["before"]
    if bare and (
        _NO_SECRET().fullmatch(value) or (_NUMBER().fullmatch(value) and _counts(tail, found["short"] or "", value))
    ):
        return found[0]
    quote = found["quote"] if bare else found["once"] or found["escaped"] or (value[0] if value[0] in "\"'" else "")
    return f"{name}{found['before'] or ''}{quote or ''}{HIDDEN}{quote or ''}"


_PATTERNS: tuple[tuple[tuple[str, ...], Callable[[], re.Pattern[str]], str | Callable[[re.Match[str]], str]], ...] = (
    # A private key, also one that was cut off, or written as one line with \n in it.
    (("private key",), _form(
        r"-----BEGIN (?P<kind>[A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,40})-----"
        r"(?:[^-]*+(?:-(?!----)[^-]*+)*+-----END (?P=kind)-----|(?:[\sA-Za-z0-9+/=,:-]|\\[nr])*+)"),
     f"-----{HIDDEN} PRIVATE KEY {HIDDEN}-----"),
    # Headers: all of the line, or up to the end of the quotes that they stand in.
    (("authorization", "cookie"), _form(
        r"^(?P<name>[^\n\"'\\]{0,200}?\b(?:authorization|cookie)[ \t]{0,9}:[ \t]{0,9})\S[^\n]*+", re.I | re.M),
     rf"\g<name>{HIDDEN}"),
    (("authorization", "cookie"), _form(
        r"(?P<name>(?:authorization|cookie)[ \t]{0,9}:[ \t]{0,9})[^\s\"'\\][^\n\"'\\]*+", re.I), rf"\g<name>{HIDDEN}"),
    # User and password of a URL, also where its slashes are escaped or the whole of it; its query.
    (("//", "\\/\\/"), _form(
        r"(?P<start>(?:\b[a-z][a-z0-9+.-]{0,30}+:)?\\?/\\?/)(?P<rest>(?:[^\s\"'<>‹›\\]|\\(?![nrt\"']))++)", re.I),
     _hide_url),
    (("%3a%2f%2f",), _form(r"(?P<start>%3A%2F%2F)[^\s&\"'<>]{1,500}%40", re.I), rf"\g<start>{HIDDEN}%40"),
    # user:password@host without a scheme; no digest of an image, no version of a package.
    (("@",), _form(
        rf"(?<![\w.+/-])(?P<user>{_USER})(?!//|:)"
        rf"(?:[^\s\"'<>‹›:…@]++|:(?!//)|…(?!@)|@){{1,99}}@(?!sha256:)(?={_HOST})", re.I), rf"\g<user>{HIDDEN}@"),
    # PASSWORD 'x', PASSWORD E'x', PASSWORD $$x$$ and IDENTIFIED BY 'x' of SQL.
    (("password", "passphrase", "identified"), _form(
        rf"(?P<sql>\b(?:password|passphrase|identified\s{{1,9}}by)\s{{1,9}})(?:[a-z]&?)?"
        rf"(?:{_QUOTED}|{_DOLLARS}|['\"](?=\S)[^\n'\"]*+)", re.I), rf"\g<sql>'{HIDDEN}'"),
    # IDENTIFIED BY x, which is in no sentence.
    (("identified",), _form(
        r"(?P<sql>\b(?:(?:user|role)\s{1,9}(?:if\s{1,9}not\s{1,9}exists\s{1,9})?[^\s;]{1,99}\s{1,9}identified\s{1,9}by"
        r"|(?-i:IDENTIFIED\s{1,9}BY))\s{1,9})(?!(?:password|random)\b|\$\d|[?%:…])[^\s\"'\\;,()…]++", re.I),
     rf"\g<sql>{HIDDEN}"),
    # A passphrase may be several words: all of the line, or up to the end of the quotes that it stands in.
    (("passphrase",), _form(
        r"(?P<name>\bpassphrase[ \t]{0,9}[=:][ \t]{0,9})[^\s\"'\\=…$][^\n\"'\\]*+", re.I), rf"\g<name>{HIDDEN}"),
    (("passphrase",), _form(
        rf"(?P<name>\bpassphrase[ \t]{{1,9}}(?:is:?[ \t]{{1,9}})?){_NO_WORD}"
        r"[^\s\"'\\…](?:[^\n\"'\\]|\\++(?![\"'nrt]))*+", re.I), rf"\g<name>{HIDDEN}"),
    # password x and password is x of a sentence or a configuration, whatever x is.
    (("passw",), _form(
        rf"(?P<name>\bpass(?:word|wd)[ \t]{{1,9}}(?:is:?[ \t]{{1,9}})?){_NO_WORD}"
        r"(?:[^\s\"'\\…]|\\++(?![\"'nrt]))++", re.I), rf"\g<name>{HIDDEN}"),
    # -u user:x of any command, also as a list of words; no numbers of a user and a group.
    (("-u", "--user"), _form(
        r"(?P<option>[\"'](?:-u|--user)[\"']\s{0,9},\s{0,9}[\"'](?!\d{1,9}:\d{1,9}[\"'])[\w.@-]{1,64}:)[^\n\"'…]++"),
     rf"\g<option>{HIDDEN}"),
    (("-u", "--user"), _form(
        r"(?P<option>(?<![\w-])(?:-u(?!(?:id|nits?|r[il]|tf)\b)|--user(?=[ \t=]))[ \t=]{0,9}"
        r"(?!\d{1,9}:\d{1,9}(?![^\s\"',;)\]]))[\w.@-]{1,64}:)[^\s\"'…]++"),
     rf"\g<option>{HIDDEN}"),
    # Bearer x, with what makes it more than a word.
    (("bearer", "basic"), _form(
        r"(?P<scheme>\b(?:bearer|basic)\s{1,9})(?=[a-z.~/-]{0,99}(?-i:[A-Z0-9_=+]))[a-z0-9._~+/=-]{8,}+", re.I),
     rf"\g<scheme>{HIDDEN}"),
    # "password": "x", PGPASSWORD=x, token: x, password%3Dx; also escaped once more inside a JSON string.
    (_KEY_WORDS, _form(
        rf"(?P<name>(?:{_KEY}(?P<tail>[\w-]{{0,40}}+)|(?P<short>{_SHORT}(?=\\{{0,8}}[\"'\]=]|[ \t]=)))"
        r"(?P<quote>\\{0,8}[\"'])?\]?[ \t]{0,20}(?:=>|:=|!=|={1,3}|:|%3[ad])[ \t]{0,20})"
        r"(?P<before>(?:[a-z_][\w.]{0,40}\(|[a-z]{1,2}&?)(?=[\"']))?"
        rf"(?P<value>{_ESCAPED}|{_QUOTED}|{_DOLLARS}"
        r"|[\"'](?=[\w$!#%&*+/.-])[^\n\"']*+"
        # At once or not at all, which Python before 3.11.5 does not always do for ++ of a group.
        r"|(?=(?P<bare>(?:[^\s,;&}\])\"']|[,;&](?![\s\"'{\[]|[\w.%-]{1,40}[ ]?[=:]|$)|[}\])\"'](?=\w))+))(?P=bare))",
        re.I), _hide_value),
    # ["--token", "x"] and --token x of a command.
    (_KEY_WORDS, _form(
        rf"(?P<option>[\"']--?[\w-]{{0,40}}{_KEY}[\w-]{{0,40}}+[\"']\s{{0,9}},\s{{0,9}})(?:{_QUOTED})", re.I),
     rf'\g<option>"{HIDDEN}"'),
    (_KEY_WORDS, _form(rf"(?P<option>(?<!\S)--?[\w-]{{0,40}}{_KEY}[\w-]{{0,40}}+[ \t]{{1,9}})(?!-)\S++", re.I),
     rf"\g<option>{HIDDEN}"),
    # curl -u a:b, mysql -pX, sshpass -p X
    (("curl", "wget"), _form(
        r"(?P<option>\b(?:curl|wget)\b[^\n]{0,300}?\s(?:-u[\s=]{0,9}|--user[\s=]{1,9}))[^\s-]\S*+", re.I),
     rf"\g<option>{HIDDEN}"),
    (("mysql", "mariadb", "sshpass"), _form(
        r"(?P<option>\b(?:mysql\w*|mariadb)\b[^\n]{0,300}?\s-p|\bsshpass\s{1,9}-p\s{0,9})[^\s-]\S*+", re.I),
     rf"\g<option>{HIDDEN}"),
    # <password>x</password>
    (("</",), _form(
        rf"(?P<tag><[\w:.-]{{0,40}}{_KEY}[\w:.-]{{0,40}}+(?:\s[^<>\n]{{0,200}}+)?>)"
        r"(?:<!\[CDATA\[)?[^<]{1,2000}+", re.I), rf"\g<tag>{HIDDEN}"),
    # Secrets that are known by their form: hashes of passwords, a licence, tokens.
    (("scram-sha-", "md5", "$"), _form(
        r"\bSCRAM-SHA-(?:1|256)\$[A-Za-z0-9+/=:$]++|\bmd5[0-9a-f]{32}\b"
        r"|\$2[abxy]?\$\d\d\$[./A-Za-z0-9]{20,}+|\$(?:[156y]|argon2i?d?)\$[^\s\"',:]{8,}+"), HIDDEN),
    (("crl-",), _form(r"\bcrl-(?=[\w+/=-]{0,99}\d)[\w+/=-]{5,}+"), HIDDEN),
    (("eyj",), _form(r"\beyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]*+"), HIDDEN),
    (("akia", "asia"), _form(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), HIDDEN),
    (("gh", "glpat", "xox", "sk", "pk"), _form(
        r"\b(?:gh[pousr]|github_pat|glpat|xox[abprs]|sk|pk)[_-](?=[A-Za-z_-]{0,40}[0-9])[A-Za-z0-9_-]{16,}+"), HIDDEN),
)  # fmt: skip
"""Each with the words (in small letters) without one of which it finds nothing, and what is shown instead."""


SHORTEST = 4
"""What has fewer characters stands in any text by chance (``n1``, ``100``): without it nobody could read one."""
FEWEST_DIGITS = 10
"""A shorter number may be a count, a time or a date that was measured."""
SHORTEST_ENCODED = 8
"""What a secret must have of characters for its base64 to be looked for."""
LONG = 16
"""What has fewer characters and stands in the suite itself is left, and of such only whole words are looked for: the
evidence is made of them (``cockroach``, ``survivability``, ``events``), and a replay could not read it without them."""
SUITE = ("plugin", "clusters", "fixtures")
"""Where the suite's own words are."""

_GIVEN: dict[str, re.Pattern[str]] = {}
"""By secret what finds it in a text."""
_LEFT: dict[str, None] = {}
"""Names of what was given and is looked for nowhere."""


def hide_given(values: Mapping[str, str]) -> None:
    """Take secrets that this run was given out of every text from now on, wherever they stand.

    ``values``: by name, such as the environment's. A name says that its value is a secret, or a DSN that it holds one.
    Left are files by their whole paths, what PWD and OLDPWD hold above all, and what would take everything else out
    with it: see ``SHORTEST``, ``FEWEST_DIGITS`` and ``LONG``, and ``not_hidden``.
    """
    for name, value in values.items():
        for under, secret in ((name, value), *_in_json(value)):
            if _OF_FILE().search(under):
                continue
            for each in (*(_named(secret) if _names_secret(under) else ()), *_in_dsn(secret)):
                if not (os.path.isabs(each) and os.path.exists(each)):  # noqa: PTH110, PTH117 - of any length
                    _hide(each)
                    if (told := each.strip()) and told not in _GIVEN and not _NO_SECRET().fullmatch(told):
                        _LEFT[name] = None


def not_hidden() -> str:
    """One line, for who ran it, that names the given secrets which stay where they stand; nothing where none does."""
    return f"not hidden: {', '.join(_LEFT)} (too short, or a word of the suite's own)" if _LEFT else ""


def _hide(secret: str) -> None:
    """Take a secret out in every form in which it may be told; of one of several lines also each line."""
    for each in dict.fromkeys((secret, secret.strip(), *(line.strip() for line in secret.splitlines()))):
        plain = unquote(each)
        for form in (each, plain, quote(each, safe=""), quote(plain, safe=""), json.dumps(each)[1:-1]):
            if form not in _GIVEN and _tells(form):
                _GIVEN[form] = re.compile(_whole(form) if _is_word(form) else re.escape(form))
        for form in (one for told in {each, plain} if len(told) >= SHORTEST_ENCODED for one in _in_base64(told)):
            _GIVEN.setdefault(form, re.compile(re.escape(form)))


def _in_base64(secret: str) -> Iterator[str]:
    """A text in base64: alone, and what of it is the same behind whatever else was encoded with it, as ``user:``."""
    content = _encoded(secret)
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(content).decode()
        for before in range(3):
            whole = 8 * (before + len(content)) // 6  # characters that what stands behind does not change
            yield encode(bytes(before) + content).decode()[-(-8 * before // 6) : whole]


def _named(secret: str) -> list[str]:
    """What stands under a secret's name, and of a user and a password the latter alone."""
    pair = re.fullmatch(r"[\w.+@-]{1,64}:(\S+)", secret.strip())
    return [secret, *([pair[1]] if pair else [])]


def _in_dsn(value: str) -> Iterator[str]:
    """What URLs and settings of a connection hold: passwords, tokens, a long name without a password.

    A password may have an @ or a slash that was not escaped: it goes on to the last @ before a blank, too.
    """
    for found in _DSN().finditer(value):
        yield re.sub(r"\\(.)", r"\1", next(filter(None, found.groups())))
    for found in _UP_TO_LAST().finditer(value):
        yield found[1]
    if whole := _NO_SCHEME().fullmatch(value.strip()):
        yield whole[1]


def _in_json(value: str) -> Iterator[tuple[str, str]]:
    """Each text in a value that is JSON itself, with the name that it stands under."""
    if not value.lstrip().startswith(("{", "[")):
        return
    try:
        waiting: list[tuple[str, Any]] = [("", json.loads(value))]
    except (ValueError, RecursionError):
        return
    while waiting:
        name, item = waiting.pop()
        if isinstance(item, dict):
            waiting += [(_entry(item) if key == "value" else key, each) for key, each in item.items()]
        elif isinstance(item, list):
            waiting += [(name, each) for each in item]
        elif isinstance(item, str):
            yield name, item


def _entry(item: Mapping[Any, Any]) -> str:
    """How an entry names what stands in it under ``value``."""
    return next((item[name] for name in _NAMING if isinstance(item.get(name), str)), "value")


_DSN = _form(
    r"//[^\s:/@]{0,64}:([^\s/@]+)@|//([^\s:/@]{16,})@"
    r"|\b(?:\w{0,40}(?:password|pwd|token|secret|apikey|api_key)|sig|signature)=(?:'((?:[^'\\]|\\.)+)'|([^\s'&;]+))",
    re.I,
)
_UP_TO_LAST = _form(r"//[^\s:/@]{0,64}:(\S+)@")
_NO_SCHEME = _form(rf"{_USER}(?!//)(\S+)@(?!sha256:){_HOST}\S*", re.I)
_OF_FILE = _form(r"(?:file|path|dir|sock)$", re.I)
_NUMERIC = _form(r"[\d.:+-]+")


def _tells(secret: str) -> bool:
    """Whether to take it out hides something, and not everything."""
    if len(secret) < SHORTEST or _NO_SECRET().fullmatch(secret):
        return False
    if _NUMERIC().fullmatch(secret) and sum(map(str.isdigit, secret)) < FEWEST_DIGITS:
        return False
    return len(secret) >= LONG or not re.search(_whole(secret.lower()), _own_words())


def _is_word(secret: str) -> bool:
    """Whether it may be part of other words by chance."""
    return len(secret) < 8 or (len(secret) < LONG and secret.isalpha()) or secret.isdigit()


def _whole(secret: str) -> str:
    return rf"(?<![A-Za-z0-9]){re.escape(secret)}(?![A-Za-z0-9])"


@cache
def _own_words() -> str:
    """The suite's own code and catalogue, in small letters."""
    files = (file for place in SUITE for file in (Path(__file__).parents[2] / place).rglob("*"))
    return "\n".join(file.read_text(encoding="utf-8").lower() for file in files if file.suffix in (".py", ".toml"))


def _names_secret(name: str) -> bool:
    known = _NAME().search(name)
    if known is None:
        return re.search(r"licen[cs]e|(?:pass|_pat|[._]key|_creds?|(?:^|_)pw)$", name, re.I) is not None
    return not (known["tail"] and _ABOUT().fullmatch(known["tail"]))


def redacted(text: str) -> str:
    """The text without what looks like a password, a key, a token or the secret part of a DSN, and what was given."""
    text = _without_given(text)
    for _ in range(PASSES):
        before, small = text, text.lower()
        for words, pattern, shown in _PATTERNS:
            if any(word in small for word in words):
                text = pattern().sub(shown, text)
        if text == before:
            break
    return text


def _without_given(text: str) -> str:
    """The text without what was given; where one secret begins or overlaps another nothing of either is left."""
    given = [*_GIVEN.items()]  # another thread may be given more
    found = sorted(one.span() for secret, form in given if secret in text for one in form.finditer(text))
    kept, end = list[str](), 0
    for begins, ends in found:
        if begins >= end:
            kept += [text[end:begins], HIDDEN]
        end = max(end, ends)
    return "".join([*kept, text[end:]])


def given_within(content: bytes | mmap) -> re.Pattern[bytes] | None:
    """What finds the secrets that this run was given in these bytes; ``None`` where they hold none."""
    # Each is looked for by itself, which is fast: files are large, and hardly any holds one.
    forms = sorted((form for form in [*_GIVEN] if content.find(_encoded(form)) >= 0), key=len, reverse=True)
    pattern = re.compile(b"|".join(_encoded(_GIVEN[form].pattern) for form in forms))
    return pattern if forms and pattern.search(content) else None


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def redacted_value(name: str, value: str) -> str:
    """What stands under this name, unless the name says that it is a secret."""
    shown = _under(name, value)
    return shown if isinstance(shown, str) else value


def redacted_json(value: Any) -> Any:
    """A JSON value of the same shape without secrets and what a secret's name names; other values become text."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return _mapping(value)
    if isinstance(value, list | tuple | set | frozenset):
        return _list([*value])
    return redacted(str(value))


def _mapping(value: Mapping[Any, Any]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for name, item in value.items():
        shown = plain = redacted(name) if isinstance(name, str) else name
        while shown in found:
            shown = f"{plain} ({len(found)})"
        found[shown] = _under(_entry(value) if name == "value" else str(name), item)
        if plain != name:  # what is left of the name may say that it is a secret, too
            found[shown] = _under(str(plain), found[shown])
    return found


def _list(value: list[Any]) -> list[Any]:
    program = PurePath(value[0]).name if value and isinstance(value[0], str) else ""
    found = []
    for before, item in zip(("", *value), value, strict=False):
        named = isinstance(item, str) and isinstance(before, str)
        if named and (_OPTION().fullmatch(before) or (before in _LOGIN and ":" in item)):
            found.append(HIDDEN)
        elif isinstance(item, str) and item.startswith("-p") and program.startswith(("mysql", "mariadb")):
            found.append(f"-p{HIDDEN}" if item != "-p" else item)
        else:
            found.append(redacted_json(item))
    return found


def _under(name: str, value: Any) -> Any:
    """What is shown of a value under a name."""
    known = _NAME().search(name)
    if known is None or known.end() != len(name) or (known["tail"] and _ABOUT().fullmatch(known["tail"])):
        return redacted_json(value)
    tail = known["tail"]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value if _counts(tail, known[0], str(value)) else HIDDEN
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return _hidden(value, numbers=tail is not None and re.fullmatch(r"s?[_-]?\d*", tail) is not None)
    return HIDDEN if value != "" else value


def _hidden(value: Any, *, numbers: bool) -> Any:
    """Everything in a value hidden, its shape kept."""
    if isinstance(value, Mapping):
        shown = _mapping(dict.fromkeys(value))
        return {name: _hidden(item, numbers=numbers) for name, item in zip(shown, value.values(), strict=True)}
    if isinstance(value, list | tuple | set | frozenset):
        return [_hidden(item, numbers=numbers) for item in value]
    if value is None or isinstance(value, bool) or (isinstance(value, int | float) and not numbers):
        return value
    return HIDDEN
