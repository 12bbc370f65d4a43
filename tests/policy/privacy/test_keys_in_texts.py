"""Keys are recognised by their shape, and little other text is taken for a key."""

import json
import random
import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.call_counts import counted

from pagein.policy.privacy.exclusions import keys_in, without, without_in_json
from pagein.policy.privacy.key_shapes import SHAPES, entropy

_LETTERS = string.ascii_letters + string.digits


def drawn(count: int, letters: str = _LETTERS, seed: int = 7) -> str:
    """Letters drawn by lot, so that no key stands in this file."""
    return "".join(random.Random(seed + count).choices(letters, k=count))  # noqa: S311 -- no secret


HEX = "0123456789abcdef"
KEYS = {
    "aws-access-token": "AKIA" + drawn(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
    "gcp-api-key": "AIza" + drawn(35),
    "github-token": "ghp_" + drawn(36),
    "github-fine-grained-pat": "github_pat_" + drawn(82),
    "gitlab-token": "glpat-" + drawn(20),
    "npm-access-token": "npm_" + drawn(36),
    "pypi-upload-token": "pypi-AgEIcHlwaS5vcmc" + drawn(80),
    "anthropic-api-key": "sk-ant-api03-" + drawn(93) + "AA",
    "openai-api-key": "sk-proj-" + drawn(74) + "T3BlbkFJ" + drawn(74),
    "huggingface-access-token": "hf_" + drawn(34, string.ascii_letters),
    "stripe-access-token": "sk_live_" + drawn(24),
    "slack-token": "xoxb-" + drawn(12, string.digits) + "-" + drawn(12, string.digits) + "-" + drawn(24),
    "sendgrid-api-token": "SG." + drawn(22) + "." + drawn(43),
    "digitalocean-token": "dop_v1_" + drawn(64, HEX),
    "databricks-api-token": "dapi" + drawn(32, HEX),
    "vault-token": "hvs." + drawn(90),
    "telegram-bot-api-token": drawn(9, "123456789") + ":AA" + drawn(33),
    "jwt": "eyJ" + drawn(30) + ".eyJ" + drawn(60) + "." + drawn(43),
}


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("around", ["{}", "the key is {}.", '"k": "{}",', "é{} ü", "-H 'x-key: {}'", "\\n{}\\n"])
def test_a_key_is_found_wherever_it_stands(name: str, around: str) -> None:
    key = KEYS[name]
    text = around.replace("\\n", "\n").format(key)
    found = keys_in(text)
    assert [text[one.start : one.end].rstrip(".") for one in found] == [key]
    assert found[0].shape == name
    assert key not in without(text, found)


@pytest.mark.parametrize(
    "line",
    [
        "POSTGRES_PASSWORD=hunter2",
        "      POSTGRES_PASSWORD: s3cr3t-Pa55w0rd",
        "export STRIPE_SECRET_KEY='{}'",
        "AWS_SECRET_ACCESS_KEY={}/+{}",
        '"JWT_SECRET": "{}"',
        "DATABASE_URL=postgres://app:{}@db:5432/app",
        "REDIS_URL=redis://:{}@cache:6379/0",
        "Authorization: Bearer {}",
        "SESSION_SECRET=correct-horse-battery-staple",
    ],
)
def test_what_an_environment_prints_is_found(line: str) -> None:
    secret = line.format(drawn(20), drawn(18))
    text = f"PATH=/usr/bin:/bin\nHOME=/root\n{secret}\nLANG=C.UTF-8\n"
    (found,) = keys_in(text)
    kept = without(text, (found,))
    assert text[found.start : found.end] not in kept
    assert kept.startswith("PATH=/usr/bin:/bin\nHOME=/root\n")
    assert kept.endswith("\nLANG=C.UTF-8\n")


@pytest.mark.parametrize(
    ("before", "value", "behind"),
    [
        ("PGPASSWORD=", "vT9kQz27Lm", ""),
        ("SIGNING_KEY=", "vT9kQz27Lm", ""),
        ("MASTER_KEY=", "vT9kQz27Lm", ""),
        ("DB_PASS=", "vT9kQz27Lm", ""),
        ("MYSQL_PWD=", "vT9kQz27Lm", ""),
        ("SSHPASS=", "vT9kQz27Lm", ""),
        ("DB_PASSWORD=", "vT$kQz27Lw", ""),
        ("DB_PASSWORD=", "$vT9kQz27Lp", ""),
        ("ADMIN_PASSWORD=", "h(8)Kq2!mZr", ""),
        ("DB_PASSWORD=", "vT9kQz&27Lk", ""),
        ("DB_PASSWORD=", "vT9kQz 27Lk,<&\\", ""),
        ("DB_PASSWORD=", "vT9k" * 200 + "$Qz", ""),
        ('APP_SECRET="', "vT9k Qz27 LqE", '"'),
        ("export APP_SECRET='", 'vT9k "Qz27" LqE', "'"),
        ("      - DB_PASSWORD=", "vT9k$Qz27", ""),
        ("      DB_PASSWORD: ", "h(8)Kq2!mZr", ""),
        ("      APP_SECRET: ", "vT9k Qz27 LqE", ""),
        ('      APP_SECRET: "', "vT9k $Qz27, LqE", '"'),
        ("    12\tDB_PASSWORD=", "vT9k$Qz27", ""),
        ("docker run -e PGPASSWORD=", "vT9kQz&27Lk", " postgres"),
        ("DATABASE_URL=postgres://app:", "vT9k@Qz27", "@db:5432/app"),
    ],
)
def test_a_value_is_withheld_whole(before: str, value: str, behind: str) -> None:
    """A half would look safe."""
    text = f"LANG=C\n{before}{value}{behind}\nHOME=/root\n"
    found = keys_in(text)
    names = {one.shape for one in found}
    assert without(text, found) in {
        f"LANG=C\n{before}[pagein: withheld, {len(value)} characters, {name}]{behind}\nHOME=/root\n" for name in names
    }
    assert keys_in(without(text, found)) == ()


BASE64 = _LETTERS + "+/"


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "line", ["SECRET_KEY={}", "export API_KEY='{}'", "  API_KEY: {}", '"API_KEY": "{}"', "-e APP_TOKEN={} x", '{{\\"secret\\":\\"{}\\"}}']
)  # fmt: skip
def test_base64_that_begins_like_a_path_is_a_key(line: str, seed: int) -> None:
    for key in (
        "/" + drawn(39, BASE64, seed),
        "/" + drawn(42, BASE64, seed) + "=",
        "-" + drawn(42, _LETTERS + "-_", seed),
    ):
        assert key not in without(line.format(key), keys_in(line.format(key)))


@pytest.mark.parametrize(
    "path",
    [
        "/run/keys/signing2",
        "/Users/Bob/Library/Keychains2/ProductionSigning",
        "/etc/pki/tls/private/Server2024Key",
        "/var/lib/docker/overlay2/" + drawn(64, HEX),
        "/home/u/ConfigurationForProduction2",
        "-DSIGNING2=/opt/Keys/Production/Signing",
        "--signing-key-file-of-Production-2",
    ],
)
def test_a_path_is_no_key(path: str) -> None:
    for line in ("SIGNING_KEY={}", '"signingKey": "{}"', "  SECRET_KEY: {}"):
        assert keys_in(line.format(path)) == ()


@pytest.mark.parametrize("depth", range(3))
@pytest.mark.parametrize(
    "name", ["password", "DB_PASSWORD", "clientSecret", "api_key", "x-api-key", "refresh_token", "Passphrase"]
)
def test_a_member_of_an_object_is_found_in_strings_of_strings(name: str, depth: int) -> None:
    """As `kubectl get -o json`, logs of requests and tools that answer with JSON print it."""
    key = drawn(20)
    value: object = {"user": "app", name: key, "port": 5432}
    for _ in range(depth):
        value = {"text": json.dumps(value)}
    text = json.dumps(value)
    (found,) = keys_in(text)
    assert text[found.start : found.end] == key
    assert keys_in(without(text, (found,))) == ()


@pytest.mark.parametrize(
    "key", ["h(8)Kq2!mZr", 'vT9k"Qz27', "vT9k\\Qz27", "vT9k Qz27 Lq", "vT9k$Qz27", "/vT9k1Qz27aB3dE5fG7hI"]
)
@pytest.mark.parametrize("depth", range(2))
def test_a_member_is_withheld_whole(key: str, depth: int) -> None:
    text = json.dumps({"password": key})
    written = json.dumps(key)[1:-1]
    for _ in range(depth):
        text, written = json.dumps({"text": text}), json.dumps(written)[1:-1]
    (found,) = keys_in(text)
    assert text[found.start : found.end] == written


def test_an_environment_in_a_string_is_found() -> None:
    key = "h(8)Kq2!mZr"
    text = json.dumps({"stdout": f"LANG=C\nDB_PASSWORD={key}\nHOME=/root\n", "args": ["-e", f"PGPASSWORD={key}"]})
    assert without(text, keys_in(text)).count(key) == 0
    assert len(keys_in(text)) == 2


@pytest.mark.parametrize(
    "text",
    [
        '{"password": "string", "secret": "required"}',
        '{\\"password\\": \\"changeme-9\\", \\"token\\": \\"${TOKEN_1}\\"}',
        '{"nextPageToken": "CAUQAA12bZ", "max_tokens": "4096"}',
        '{"type": "password", "placeholder": "Password2"}',
        '{"api_key": "the key of the service, from its console"}',
        '{"apiKey": "process.env.API_KEY_2"}',
        "DB_PASSWORD=\nDB_HOST=server-12\n",
    ],
)
def test_a_member_that_only_names_a_key_is_none(text: str) -> None:
    assert keys_in(text) == ()


def test_a_private_key_is_found_whole_cut_and_with_line_numbers() -> None:
    lines = [drawn(64, _LETTERS + "+/", seed) for seed in range(6)]
    head, end = "-----BEGIN OPENSSH " + "PRIVATE KEY-----", "-----END OPENSSH PRIVATE KEY-----"
    whole = [head, *lines, end]
    for text in (
        "\n".join(whole),
        "\n".join(whole[:-1]),
        "\\n".join(whole),
        "\n".join(f"{number:6}\t{line}" for number, line in enumerate(whole)),
    ):
        kept = without(text, keys_in(text))
        assert not any(line in kept for line in lines)


@pytest.mark.parametrize(
    "text",
    [
        "MAX_TOKENS=4096",
        "API_KEY=your-api-key-here",
        "const API_KEY = process.env.API_KEY",
        "TOKEN: string",
        "SECRET_KEY = settings.SECRET_KEY",
        'PASSWORD = getpass("Password: ")',
        "GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}",
        "AKIA" + "IOSFODNN7EXAMPLE",
        "ghp_" + "x" * 36,
        "sha256: " + drawn(64, HEX),
        "postgres://postgres:postgres@localhost/test",
        "https://example.com/a:b@c",
        "-----BEGIN PUBLIC KEY-----\n" + drawn(64) + "\n-----END PUBLIC KEY-----",
        "commit " + drawn(40, HEX),
        "REVIEW_TOKEN: options?.workerReviewGithubToken",
        "DB_PASSWORD=$DB_PASSWORD_2",
        "DB_PASSWORD=${DB_PASSWORD:-a8$kq}",
        "DB_PASSWORD=$(openssl rand -hex 32)",
        'export DB_PASSWORD="$(openssl rand -hex 32)"',
        "SIGNING_KEY=/run/keys/signing-2.pem",
        "SIGNING_KEY=",
        "MASTER_KEY=true",
        "USE_TOKEN=1234567",
        "API_KEY=<set 16 letters>",
        "  API_KEY: z.string().min(16),",
        "  API_TOKEN: proxy.token,",
        "TOKEN: the one that is sent with each request",
        "GH_TOKEN: ${{ steps.step1.outputs.token }}",
        "PWD=/home/u/work1",
        "PWD: ~/work1/abc",
        "MONKEY=vT9kQz27Lm",
        "COMPASS=vT9kQz27Lm",
    ],
)
def test_what_only_names_a_key_is_none(text: str) -> None:
    assert keys_in(text) == ()


@given(st.text(alphabet=st.characters(), max_size=300), st.sampled_from(sorted(KEYS)), st.text(max_size=300))
def test_spans_fit_any_text(before: str, name: str, behind: str) -> None:
    text = f"{before} {KEYS[name]} {behind}"
    end = 0
    for one in keys_in(text):
        assert end <= one.start < one.end <= len(text)
        end = one.end
    assert KEYS[name] not in without(text, keys_in(text))


def test_json_stays_json() -> None:
    key = KEYS["github-token"]
    kept = without_in_json(f'{{"command":"echo\\n{key}","n":[1,"{key}"]}}', keys_in)
    assert kept == (
        '{"command":"echo\\n[pagein: withheld, 40 characters, github-token]",'
        '"n":[1,"[pagein: withheld, 40 characters, github-token]"]}'
    )
    assert without_in_json("no json " + key, keys_in) == "no json [pagein: withheld, 40 characters, github-token]"


def test_every_shape_is_one_that_a_linear_engine_takes() -> None:
    for shape in SHAPES:
        assert shape.words, shape.name
        assert keys_in("\n".join(shape.words)) == ()


# words of many shapes and no key, as in a large file of program code
WORDY = "".join(f"{word} {place}\n" for place, shape in enumerate(SHAPES) for word in shape.words) * 64


@pytest.mark.parametrize("name", KEYS)
def test_a_large_text_holds_the_keys_that_a_small_one_holds(name: str) -> None:
    text = f"{WORDY}é the key is {KEYS[name]} {WORDY}"
    assert [(text[one.start : one.end], one.shape) for one in keys_in(text)] == [(KEYS[name], name)]


def test_a_large_text_with_words_of_many_shapes_costs_two_looks() -> None:
    assert len(WORDY) < 1 << 20 < len(WORDY) * len(SHAPES)
    found, calls = counted(lambda: keys_in(WORDY))
    assert (found, calls["_spans"]) == ((), 0)
    found, calls = counted(lambda: keys_in(WORDY + KEYS["jwt"]))
    assert len(found) == 1
    assert 0 < calls["_spans"] < 4  # the one shape, once for each of its matches


def test_looking_is_linear() -> None:
    hard = "-----BEGIN " + "PRIVATE KEY-----" + "A" * 39 + "API_" * 50 + "://" * 50 + "SECRET_" * 50 + "Authorization: "
    began = time.perf_counter()
    keys_in(hard * 10)
    once = time.perf_counter() - began
    began = time.perf_counter()
    keys_in(hard * 100)
    assert time.perf_counter() - began < 100 * max(
        once, 0.001
    )  # ten times the text, and no more than ten times that by accident


def test_entropy_is_shannons() -> None:
    assert entropy("") == entropy("aaaa") == 0.0
    assert entropy("abab") == 1.0
