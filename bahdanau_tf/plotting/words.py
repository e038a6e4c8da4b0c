"""What the view of an alignment says, in the languages of its readers."""

from __future__ import annotations

from typing import NamedTuple


class Words(NamedTuple):
    """The words of one language.

    Attributes:
        target: Heading of the translation.
        source: Heading of the sentence that was translated.
        hint: What to do to see the alignment.
        no_attention: Why there is none.
        aligned: About a word of the translation: `{word}` and the source's
            `{others}`.
        looked_at: About a word of the source: `{word}` and the translation's
            `{others}`.
        quoted: A word, with the language's quotation marks.
        separator: What is between two of the others.
        nothing: If no other word has a share worth showing.
    """

    target: str
    source: str
    hint: str
    no_attention: str
    aligned: str
    looked_at: str
    quoted: str
    separator: str
    nothing: str


WORDS = {
    "en": Words(
        target="Translation",
        source="Original text",
        hint="Point at a word, or move to it with Tab.",
        no_attention="No alignment: this model has no attention.",
        aligned="{word} was aligned to {others}",
        looked_at="{word} was looked at for {others}",
        quoted="“{}”",
        separator=", ",
        nothing="no word in particular",
    ),
    "ko": Words(
        target="번역문",
        source="원문",
        hint="단어에 마우스를 올리거나 Tab 키로 옮겨 다녀 보세요.",
        no_attention="이 모델에는 어텐션이 없어서 정렬도 없습니다.",
        aligned="{word}에 정렬된 원문 단어: {others}",
        looked_at="{word}에 주목한 번역문 단어: {others}",
        quoted="‘{}’",
        separator=", ",
        nothing="뚜렷한 단어 없음",
    ),
    "ja": Words(
        target="訳文",
        source="原文",
        hint="単語にマウスを重ねるか、Tab キーで単語に移動してください。",
        no_attention="このモデルにはアテンションがないため、アラインメントは"
        "ありません。",
        aligned="{word}に対応する原文の単語：{others}",
        looked_at="{word}に注目した訳文の単語：{others}",
        quoted="「{}」",
        separator="、",
        nothing="特になし",
    ),
}


def words_of(language: str) -> Words:
    """The words of a language.

    Raises:
        ValueError: There are none in this language.
    """
    if language not in WORDS:
        raise ValueError(
            f"Translation.view: language is {language!r}, wanted one of "
            f"{', '.join(WORDS)}"
        )
    return WORDS[language]
