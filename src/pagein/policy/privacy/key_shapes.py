r"""Shapes of vendors' keys, as data: prefix, alphabet and length; and the test whether a text of a shape is a key.

The shapes are facts from the vendors' documents and from the rule lists of gitleaks 8 (MIT licence), with gitleaks'
rule names where there is one. Only recognisable shapes are listed: with a fixed beginning, or behind a name.
Expressions are in RE2's syntax, over bytes; the last group that took part is the key. `words` are needed in a text for
a rule to match, so that most texts cost one look.

A doubtful text is no key: redacted text stays in the window for good, and that costs. A key must look random where its
shape says so (`entropy`), and a placeholder in an example is no key.
"""

import math
import string
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of key.

    words: texts of which one must be present. expression: regular expression of the key.
    entropy: minimum bits per character of the key (Shannon); 0: any.
    """

    name: str
    words: tuple[str, ...]
    expression: str
    entropy: float = 0.0


_NAMES: Final = (
    r"(?:[A-Z0-9]{0,20}(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN)|SECRET_?KEY|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|ENCRYPTION_?KEY"
    r"|CREDENTIALS?|SIGNING_?KEY|MASTER_?KEY|SSHPASS|DB_?PASS|MYSQL_PWD)"
)
_WORDS: Final = ("PASS", "PWD", "SECRET", "KEY", "TOKEN", "CREDENTIAL")
_VALUE: Final = r"""([^\s"'`$<>{}()\[\],;*\\|&]{6,}(?:[$(){}\[\],;*|&][^\s"'`\\<>]+)?)"""
# a variable on its own line, as `printenv` and `docker compose config` print it: its value may hold anything, and ends with the line
_LINE: Final = (
    r"""(?m:^)(?:[ ]{0,6}\d{1,6}[\t:|])?[ \t]{0,40}(?:-[ ]{1,3})?(?:export[ ]|ENV[ ])?["']?"""
    r"""(?:[A-Z0-9_]{0,80}(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|CREDENTIALS?|API_?KEY|ACCESS_?KEY|SECRET_?KEY)(?:_[A-Z0-9]+){0,2}"""
    r"""|[A-Z0-9_]{0,80}_(?:KEY|PASS|PWD)|KEY|SSHPASS)["']?"""
)
_TO_ITS_END: Final = r"""(?:"([^"\n]{6,})"|'([^'\n]{6,})'"""
# a member of a JSON object, also of JSON inside a JSON string (`\"password\": \"...\"`); only here are names in small letters accepted
_MEMBER: Final = (
    r"""(?i:[a-z0-9_.-]*(?:password|passwd|passphrase|secret|credentials?|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key"""
    r"""|signing[_-]?key|master[_-]?key|encryption[_-]?key|(?:access|auth|refresh|bearer|api|id|session|bot|secret|private)[_-]?token))"""
)
_ENDS: Final = ("assword", "asswd", "assphrase", "ecret", "redential", "redentials", "ey", "oken")
_MEMBERS: Final = tuple(cased + mark for end in _ENDS for cased in (end, end.upper()) for mark in ('"', "\\"))
# a variable in a string of JSON, where the end of a line is written as two letters
_IN_STRING: Final = r"""(?:\\{1,3}[nrt]|")(?:export[ ])?[A-Z0-9_]*(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|CREDENTIALS?|API_?KEY|ACCESS_?KEY|_KEY|_PASS|_PWD|SSHPASS)"""
_SET: Final = (
    "PASSWORD=",
    "PASSWD=",
    "PASSPHRASE=",
    "SECRET=",
    "TOKEN=",
    "CREDENTIAL=",
    "CREDENTIALS=",
    "KEY=",
    "PASS=",
    "PWD=",
)

SHAPES: Final = (
    # clouds
    Shape("aws-access-token", ("AKIA", "ASIA", "ABIA", "ACCA"), r"\b((?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16})\b", 3.0),
    Shape("gcp-api-key", ("AIza",), r"\b(AIza[\w-]{35})(?:[^\w-]|$)", 4.0),
    Shape("gcp-client-secret", ("GOCSPX-",), r"\b(GOCSPX-[\w-]{28})(?:[^\w-]|$)", 3.0),
    Shape("gcp-access-token", ("ya29.",), r"\b(ya29\.[\w-]{40,})", 3.5),
    Shape("azure-account-key", ("AccountKey=", "SharedAccessKey="), r"(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{40,}={0,2})", 4.0),
    Shape("azure-ad-client-secret", ("Q~",), r"""(?:^|['"\x60\s>=:(,)])([\w.~-]{3}\dQ~[\w.~-]{31,34})(?:$|['"\x60\s<),])""", 3.0),
    Shape("digitalocean-token", ("_v1_",), r"\b(do[opr]_v1_[a-f0-9]{64})\b", 3.0),
    Shape("cloudflare-origin-ca-key", ("v1.0-",), r"\b(v1\.0-[a-f0-9]{24}-[a-f0-9]{146})\b", 2.0),
    Shape("heroku-api-key", ("HRKU-",), r"\b(HRKU-AA[\w-]{58})", 4.0),
    Shape("flyio-access-token", ("fo1_", "fm1", "fm2_"), r"\b(fo1_[\w-]{43}|fm1[ar]_[\w+/-]{100,}={0,3}|fm2_[\w+/-]{100,}={0,3})", 4.0),
    Shape("planetscale-token", ("pscale_",), r"\b(pscale_(?:tkn|oauth|pw)_[\w=.-]{32,64})", 3.0),
    Shape("supabase-token", ("sbp_", "sb_secret_"), r"\b(sbp_[a-f0-9]{40}|sb_secret_[\w-]{31,})", 3.0),
    Shape("databricks-api-token", ("dapi",), r"\b(dapi[a-f0-9]{32}(?:-\d)?)\b", 3.0),
    Shape("tailscale-key", ("tskey-",), r"\b(tskey-[a-z]+-\w{8,}-\w{16,})", 3.0),
    # code, packages, delivery
    Shape("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"\b(gh[pousr]_[0-9A-Za-z]{36,255})\b", 3.0),
    Shape("github-fine-grained-pat", ("github_pat_",), r"\b(github_pat_\w{70,100})\b", 3.0),
    Shape("gitlab-token", ("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glsoat-", "glft-"), r"\b(gl(?:pat|dt|rt|cbt|ptt|soat|ft)-[\w.-]{20,300})", 3.0),
    Shape("atlassian-api-token", ("ATATT3", "ATBB"), r"\b(ATATT3[\w=-]{100,300}|ATBB[A-Za-z0-9]{32})", 3.5),
    Shape("npm-access-token", ("npm_",), r"\b(npm_[A-Za-z0-9]{36})\b", 3.0),
    Shape("npmrc-auth", ("_authToken", "_password"), r"""_(?:authToken|password)\s{0,3}=\s{0,3}["']?([\w+/=.-]{16,})""", 3.0),
    Shape("pypi-upload-token", ("pypi-AgE",), r"\b(pypi-AgE[\w-]{50,1000})", 3.0),
    Shape("rubygems-api-token", ("rubygems_",), r"\b(rubygems_[a-f0-9]{48})\b", 2.0),
    Shape("docker-token", ("dckr_",), r"\b(dckr_(?:pat|oat)_[\w-]{27,})", 3.0),
    Shape("artifactory-api-key", ("AKCp",), r"\b(AKCp[A-Za-z0-9]{69})\b", 4.0),
    Shape("hashicorp-tf-api-token", (".atlasv1.",), r"\b([A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,70})", 3.5),
    Shape("vault-token", ("hvs.", "hvb.", "hvr."), r"\b(hv[sbr]\.[\w-]{24,300})", 3.0),
    Shape("pulumi-api-token", ("pul-",), r"\b(pul-[a-f0-9]{40})\b", 2.0),
    Shape("doppler-api-token", ("dp.",), r"\b(dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,})", 3.0),
    Shape("1password-service-account-token", ("ops_ey",), r"\b(ops_ey[A-Za-z0-9+/]{250,}={0,3})", 4.0),
    # models
    Shape("anthropic-api-key", ("sk-ant-",), r"\b(sk-ant-[a-z]+\d\d-[\w-]{40,200})", 3.5),
    Shape("openai-api-key", ("T3BlbkFJ", "sk-proj-", "sk-svcacct-", "sk-admin-"), r"\b(sk-(?:[\w-]{16,100}T3BlbkFJ[\w-]{16,100}|(?:proj|svcacct|admin)-[\w-]{40,200}))", 3.5),
    Shape("openrouter-api-key", ("sk-or-",), r"\b(sk-or-v1-[a-f0-9]{64})\b", 3.0),
    Shape("groq-api-key", ("gsk_",), r"\b(gsk_[A-Za-z0-9]{52})\b", 3.0),
    Shape("xai-api-key", ("xai-",), r"\b(xai-[A-Za-z0-9]{80})\b", 3.0),
    Shape("perplexity-api-key", ("pplx-",), r"\b(pplx-[A-Za-z0-9]{48})\b", 4.0),
    Shape("huggingface-access-token", ("hf_", "api_org_"), r"\b((?:hf|api_org)_[A-Za-z]{34})\b", 3.5),
    Shape("replicate-api-token", ("r8_",), r"\b(r8_[A-Za-z0-9]{37})\b", 3.0),
    Shape("langsmith-api-key", ("lsv2_",), r"\b(lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10})\b", 3.0),
    # money
    Shape("stripe-access-token", ("k_live_", "k_test_", "k_prod_"), r"\b([rs]k_(?:live|test|prod)_[A-Za-z0-9]{16,200})\b", 3.0),
    Shape("stripe-webhook-secret", ("whsec_",), r"\b(whsec_[A-Za-z0-9+/]{32,}={0,2})", 3.5),
    Shape("square-access-token", ("EAAA", "sq0"), r"\b((?:EAAA|sq0[a-z]{3}-)[\w-]{22,60})\b", 3.5),
    Shape("shopify-token", ("shpat_", "shpca_", "shppa_", "shpss_"), r"\b(shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32})\b", 2.0),
    # talk
    Shape("slack-token", ("xoxa-", "xoxb-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"), r"\b((?:xox[aboprs]-|xoxe[.-](?:xox[bp]-)?|xapp-\d-)[\w-]{20,300})", 3.0),
    Shape("slack-webhook-url", ("hooks.slack.com",), r"hooks\.slack\.com/(?:services|workflows|triggers)/([\w+/]{43,56})", 3.0),
    Shape("discord-webhook-url", ("/api/webhooks/",), r"discord(?:app)?\.com/api/webhooks/\d{10,}/([\w-]{60,})", 3.0),
    Shape("telegram-bot-api-token", (":AA",), r"\b(\d{8,10}:AA[\w-]{33})(?:[^\w-]|$)", 3.0),
    Shape("sendgrid-api-token", ("SG.",), r"\b(SG\.[\w=-]{20,24}\.[\w=-]{39,50})", 3.0),
    Shape("mailgun-private-api-token", ("key-",), r"\b(key-[a-f0-9]{32})\b", 3.0),
    Shape("twilio-api-key", ("SK",), r"\b(SK[0-9a-f]{32})\b", 3.0),
    # watching and working together
    Shape("grafana-token", ("glc_", "glsa_"), r"\b(glc_[A-Za-z0-9+/]{32,400}={0,3}|glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8})", 3.0),
    Shape("new-relic-user-api-key", ("NRAK-",), r"\b(NRAK-[A-Z0-9]{27})\b", 3.0),
    Shape("sentry-token", ("sntrys_", "sntryu_"), r"\b(sntrys_[\w+/=]{60,}|sntryu_[a-f0-9]{64})", 3.0),
    Shape("dynatrace-api-token", ("dt0c01.",), r"\b(dt0c01\.[A-Z0-9]{24}\.[A-Z0-9]{64})\b", 3.5),
    Shape("linear-api-key", ("lin_api_",), r"\b(lin_api_[A-Za-z0-9]{40})\b", 2.0),
    Shape("notion-api-token", ("ntn_",), r"\b(ntn_\d{11}[A-Za-z0-9]{35})\b", 3.5),
    Shape("airtable-token", ("pat",), r"\b(pat[A-Za-z0-9]{14}\.[a-f0-9]{64})\b", 3.0),
    Shape("postman-api-token", ("PMAK-",), r"\b(PMAK-[a-fA-F0-9]{24}-[a-fA-F0-9]{34})\b", 3.0),
    Shape("figma-token", ("figd_",), r"\b(figd_[\w-]{40})", 3.0),
    # of any vendor
    Shape("private-key", ("PRIVATE KEY",), r"-----BEGIN[ A-Z0-9]{0,40}PRIVATE KEY(?: BLOCK)?-----((?s:.+?)-----END[ A-Z0-9]{0,40}PRIVATE KEY)", 3.5),
    Shape("private-key-cut", ("PRIVATE KEY",), r"-----BEGIN[ A-Z0-9]{0,40}PRIVATE KEY(?: BLOCK)?-----((?:[^A-Za-z0-9+/=]{0,16}(?:\\[nr]){0,2}\s{0,16}(?:\d{1,6}[^A-Za-z0-9+/=]{1,4})?[A-Za-z0-9+/=]{40,100})+)", 3.5),
    Shape("age-secret-key", ("AGE-SECRET-KEY-1",), r"\b(AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58})\b"),
    Shape("jwt", ("eyJ",), r"\b(eyJ[\w-]{17,}\.eyJ[\w-]{17,}\.[\w-]{20,})", 3.5),
    Shape("authorization-header", ("uthorization", "UTHORIZATION"), r"""(?i:authorization)\\?["']?\s{0,3}[:=]\s{0,3}\\?["']?(?i:bearer|basic|token)\s{1,3}([\w+/=.~-]{20,})""", 3.5),
    Shape("password-in-url", ("://",), r"\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s:/@'\"<>${}\[\]()*?#\\]{0,64}:([^\s:/'\"<>${}\[\]()*?#\\]{6,128})@[\w.-]", 2.0),
    Shape("named-variable", _WORDS, r"""(?m:^|[\s"'{,;&(])(?:[A-Z][A-Z0-9]*_)?(?:[A-Z0-9]+_){0,6}""" + _NAMES + r"""(?:_[A-Z0-9]+){0,2}\\?["']?\s{0,3}[=:][ \t]{0,3}\\?["']?""" + _VALUE, 2.0),
    Shape("json-member", _MEMBERS, r'"' + _MEMBER + r'"\s{0,3}:\s{0,3}"((?:[^"\\\n]|\\[^\n]){6,})"', 2.0),
    Shape("json-member-in-string", _MEMBERS, r'\\"' + _MEMBER + r'\\"\s{0,3}:\s{0,3}\\"((?:[^"\\\n]|\\\\(?:\\["\\]|[^"\\\n])){6,})\\"', 2.0),
    Shape("json-member-in-strings", _MEMBERS, r'\\{3}"' + _MEMBER + r'\\{3}"\s{0,3}:\s{0,3}\\{3}"([^"\\\n]{6,})\\{3}"', 2.0),
    Shape("environment-in-string", _SET, _IN_STRING + r"""=([^\s"'\\][^\s"\\]{5,})(?:\\|"|(?m:$))""", 2.0),
    Shape("environment-line", _WORDS, _LINE + "=" + _TO_ITS_END + r"""|([^\s"'][^\n]{5,}))""", 2.0),
    Shape("yaml-line", _WORDS, _LINE + "[ ]?:[ ]{1,3}" + _TO_ITS_END + r"""|([^\s"'][^\n]{4,}[^\s,;{(]))[,\s]*(?m:$)""", 2.0),
)  # fmt: skip


# --- what has a shape, and is a key ---

_EXAMPLES: Final = (
    "example", "changeme", "change_me", "change-me", "placeholder", "your", "dummy", "redacted", "sample", "xxxx", "1234567890abcdef",
    "abcdefgh", "00000000", "fake", "test_key", "notreal", "process.env", "os.environ", "secrets.", "getenv", "import.meta", "config.",
    "undefined", "localhost", "abc123", "?.",
)  # fmt: skip
_NAMES_OF_KEYS: Final = ("key", "token", "secret", "password", "credentials")
_MANY: Final = 0.8
_WORDY: Final = 3.2
_DRAWN_FROM: Final = 20
_CHANGES: Final = 0.4
"""Minimum share of neighbouring letters of different kinds (small, capital, digit): about .6 in random text, under .3
in words.
"""
_KINDS: Final = 3
_BASE64: Final = frozenset(string.ascii_letters + string.digits + "+/")
_BASE64_URL: Final = frozenset(string.ascii_letters + string.digits + "-_")
_MEMBER_SHAPES: Final = frozenset({"json-member", "json-member-in-string", "json-member-in-strings"})
_NAMED_SHAPES: Final = (
    frozenset({"environment-line", "environment-in-string", "yaml-line", "named-variable"}) | _MEMBER_SHAPES
)
_LOOSE_SHAPES: Final = _NAMED_SHAPES | {"password-in-url"}
_REFERENCES: Final = (("${", "}"), ("$(", ")"), ("`", "`"), ("<", ">"), ("[pagein: withheld, ", "]"))


def is_key(shape: Shape, key: str) -> bool:
    """Return whether a text with the shape of a key is one, and no placeholder, word or reference to a key."""
    if shape.entropy and entropy(key) < shape.entropy:
        return False
    low = key.partition(" #")[0].lower()
    if any(word in low for word in _EXAMPLES):
        return False
    if shape.name in _NAMED_SHAPES and _is_spoken_of(
        key, prose=shape.name == "yaml-line" or shape.name in _MEMBER_SHAPES
    ):
        return False
    return shape.name not in _LOOSE_SHAPES or _looks_drawn(key)


def _is_spoken_of(line: str, *, prose: bool) -> bool:
    """Return whether a line names the source of the value instead of the value: a variable, a command, a call, words."""
    value = line.strip("\"', ;\t\r")
    if any(value.startswith(begin) and end in value for begin, end in _REFERENCES) or _name_pattern().fullmatch(
        value.encode()
    ):
        return True
    return prose and " " in value and not any(one.isdigit() for one in value)


def _looks_drawn(key: str) -> bool:
    """Return whether a value behind a telling name may be a password, instead of code or words."""
    letters = sum(one.isalpha() for one in key)
    digits = sum(one.isdigit() for one in key)
    if not letters or key.startswith((".", "http")) or (key.startswith(("/", "-")) and not _is_base64(key)):
        return False
    if not digits and (entropy(key) < _WORDY or all(one.isalpha() or one in "_." for one in key)):
        return False
    if not digits and key.lower().endswith(_NAMES_OF_KEYS):
        return False
    return Counter(key).most_common(1)[0][1] < _MANY * len(key)


def _is_base64(key: str) -> bool:
    """Return whether a value with the beginning of a path or flag is base64 by chance: long, one alphabet, mixed
    letters.
    """
    plain = key.rstrip("=,")
    if len(plain) < _DRAWN_FROM or not (set(plain) <= _BASE64 or set(plain) <= _BASE64_URL):
        return False
    kinds = ["a" if one.islower() else "A" if one.isupper() else "0" for one in plain if one.isalnum()]
    changes = sum(one != other for one, other in pairwise(kinds))
    return len(set(kinds)) == _KINDS and changes >= _CHANGES * len(kinds)


def entropy(text: str) -> float:
    """Return the Shannon entropy of a text, in bits per character."""
    counts = Counter(text)
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts.values()) if text else 0.0


@cache
def _name_pattern() -> Any:  # noqa: ANN401  as below
    return compile_expression(r"\$[A-Z_][A-Z0-9_]*|[A-Za-z_.]+(?:\(.*\)|\[.*\])")


@cache
def words_of_shapes() -> tuple[Any, tuple[Shape, ...]]:
    """Return a matcher for the words of every shape, and the shape of each word."""
    import re2

    found, shapes = re2.Set.SearchSet(_options()), []
    for shape in SHAPES:
        for word in shape.words:
            found.Add(re2.escape(word))
            shapes.append(shape)
    found.Compile()
    return found, tuple(shapes)


@cache
def expressions_of_shapes() -> Any:  # noqa: ANN401  as below
    """Return a matcher for the expressions of all shapes together, numbered as in `SHAPES`. Made in 20 ms."""
    import re2

    found = re2.Set.SearchSet(_options())
    for shape in SHAPES:
        found.Add(shape.expression)
    found.Compile()
    return found


@cache
def compile_expression(expression: str) -> Any:  # noqa: ANN401  re2 ships no types
    """Return the compiled expression of a shape, for bytes. Remembered."""
    import re2

    return re2.compile(expression.encode(), _options())


def _options() -> Any:  # noqa: ANN401  as above
    import re2

    options: Any = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 64 << 20
    return options
