"""Words of languages without spaces, letters of foreign scripts."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.scripts import SCRIPTS, ForeignLetters, Words, base, scripts_of

OPUS_100 = (
    "af am an ar as az be bg bn br bs ca cs cy da de dz el en eo es et eu fa fi fr fy ga gd gl gu ha he hi hr hu "
    "hy id ig is it ja ka kk km kn ko ku ky li lt lv mg mk ml mn mr ms mt my nb ne nl nn no oc or pa pl ps pt ro "
    "ru rw se sh si sk sl sq sr sv ta te tg th tk tr tt ug uk ur uz vi wa xh yi yo zh zu"
)
WMT = "cs de en es fi fr gu ha hi hr hu is iu ja ka kk kn km lt lv ps pl ro ru ta tr uk zh zu xh bn hsb dsb liv sah"

SAMPLES = {
    "am": "ሰላም ለዓለም",
    "ar": "مرحبا بالعالم",
    "bg": "Здравей, свят",
    "bn": "ওহে বিশ্ব",
    "cs": "Příliš žluťoučký kůň úpěl ďábelské ódy",
    "de": "Füße, Ärger, GROẞ",
    "el": "Γειά σου Κόσμε",
    "he": "שלום עולם",
    "hi": "नमस्ते दुनिया",
    "hy": "Բարեւ աշխարհ",
    "ja": "こんにちは、コンピューター世界",
    "ka": "გამარჯობა მსოფლიო",
    "ko": "안녕 세계",
    "my": "မင်္ဂလာပါ ကမ္ဘာလောက",
    "or": "ନମସ୍କାର",
    "sr": "Здраво свете, dobar dan",
    "ta": "வணக்கம்",
    "th": "สวัสดีชาวโลก",
    "vi": "Chào thế giới, ở đâu",
    "yo": "Ẹ káàbọ̀ ọ̀rẹ́",
    "zh": "你好,世界",
}


def test_every_language_of_the_large_corpora_has_its_scripts() -> None:
    unknown = [code for code in (OPUS_100 + " " + WMT).split() if scripts_of(code) is None]
    assert not unknown


@pytest.mark.parametrize("code", sorted(SCRIPTS))
def test_every_script_of_the_table_exists_and_has_letters(code: str) -> None:
    names = {"Han": "CJK", "Meetei_Mayek": "MEETEI MAYEK", "Canadian_Aboriginal": "CANADIAN SYLLABICS"}
    for script in SCRIPTS[code]:
        word = names.get(script, script.upper().replace("_", " "))
        letters = (chr(point) for point in range(0x41, 0x20000) if chr(point).isalpha())
        letter = next(one for one in letters if unicodedata.name(one, "").startswith(word))
        assert not ForeignLetters(code, 0.0).over(letter), (script, letter)


@pytest.mark.parametrize("code", sorted(SAMPLES))
def test_own_text_is_not_foreign_and_that_of_other_scripts_is(code: str) -> None:
    letters = ForeignLetters(code, 0.3)
    for other, text in SAMPLES.items():
        expected = not set(scripts_of(other) or ()) <= set(scripts_of(code) or ())
        if expected and set(scripts_of(other) or ()) & set(scripts_of(code) or ()):
            continue  # Japanese and Chinese share characters, Serbian both of its scripts
        assert letters.over(text) == expected, other


@pytest.mark.parametrize(
    ("code", "scripts"),
    [
        ("pt-BR", ("Latin",)),
        ("zh_TW", SCRIPTS["zh"]),
        ("ZH", SCRIPTS["zh"]),
        ("zho_Hant", ("Han",)),
        ("eng_Latn", ("latn",)),
        ("sr-Cyrl-RS", ("cyrl",)),
        ("kor_Kore", SCRIPTS["ko"]),
        ("jpn", SCRIPTS["ja"]),
        ("xx", None),
        ("en-Zzzq", None),
    ],
)
def test_tags_for_region_and_script(code: str, scripts: tuple[str, ...] | None) -> None:
    assert scripts_of(code) == scripts


def test_a_script_tag_narrows() -> None:
    assert ForeignLetters("sr-Latn", 0.5).over("Здраво")
    assert not ForeignLetters("sr-Latn", 0.5).over("Zdravo ćao")
    assert not ForeignLetters("sr", 0.5).over("Здраво")


LATIN = st.text(st.sampled_from("aZéßĀɐΩжא世ªµʼ ,’€12\u0301\u200dⅨＡ"), max_size=20)


@settings(deadline=None, max_examples=300)
@given(LATIN, st.sampled_from([0.0, 0.25, 0.5, 0.9]), st.sampled_from(["en", "ru"]))
def test_foreign_letters_as_the_names_of_the_letters_tell(text: str, limit: float, code: str) -> None:
    own = {"en": ("LATIN", "FULLWIDTH LATIN", "FEMININE ORDINAL"), "ru": ("CYRILLIC",)}[code]
    nobodys = ("MICRO SIGN", "MODIFIER LETTER APOSTROPHE")
    letters = [one for one in text if unicodedata.category(one).startswith("L")]
    foreign = [one for one in letters if not unicodedata.name(one).startswith(own + nobodys)]
    assert ForeignLetters(code, limit).over(text) == (len(foreign) > limit * len(letters))


# --- words ------------------------------------------------------------------------------------------------------------


@given(st.text(max_size=30))
def test_words_with_spaces_are_what_split_finds(text: str) -> None:
    assert Words("de")(text) == (len(text.split()) or 1, text.split())


@pytest.mark.parametrize(
    ("code", "text", "count", "bounded"),
    [
        ("zh", "我们 明天 去 北京", 5, []),  # 8 characters of 1.6 a word
        ("zh", "我们明天去北京", 5, []),  # 7 of 1.6 a word, rounded up
        ("zh", "我们,去。", 2, []),
        ("zh", "我用 Windows 11 工作", 5, ["Windows", "11"]),
        ("zh-CN", "hello big world", 3, ["hello", "big", "world"]),
        ("cmn", "我们明天去北京", 5, []),
        ("ja", "コンピューターを使う", 5, []),
        ("th", "สวัสดีชาวโลก", 3, []),  # 12 code points, marks counted
        ("zh", "。！", 1, []),
        ("ko", "안녕 세계", 2, ["안녕", "세계"]),
    ],
)
def test_words_without_spaces_are_told_from_the_characters(
    code: str, text: str, count: int, bounded: list[str]
) -> None:
    assert Words(code)(text) == (count, bounded)


def test_base_of_a_code() -> None:
    assert [base(code) for code in ("en", "pt_BR", "zh-Hant-TW", "DE", "jpn_Jpan")] == ["en", "pt", "zh", "de", "ja"]
