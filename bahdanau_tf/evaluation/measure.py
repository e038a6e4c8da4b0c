"""The tokenizer with which BLEU counts words."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from bahdanau_tf.text.script import is_tokenized, unspaced_script


def bleu_tokenizer(language: str, sentences: Sequence[str]) -> str:
    """Chooses the tokenizer with which BLEU counts words.

    The script of the sentences decides; the language does where the script
    fits several languages, and where there are no letters:

    - "13a" for text with spaces between words;
    - "zh" for Chinese, with or without spaces;
    - "none" for text of another script without spaces that is tokenized: it
      has a space after every few letters;
    - "ja-mecab" for Japanese, if mecab-python3 and ipadic are installed;
    - "char" for Japanese without them, Thai, Lao, Khmer, Burmese, Tibetan and
      other scripts without spaces.

    Nothing is downloaded.

    Args:
        language: Code of the language, such as "ja" or "zh-TW"; "" if it is
            not known.
        sentences: References, or other text of that language.

    Returns:
        The name of a tokenizer of sacreBLEU, for `bleu`.
    """
    script = unspaced_script(sentences, language)
    if script == "han":
        return "zh"
    if script and is_tokenized(sentences):
        return "none"
    if script == "kana" and find_spec("MeCab") and find_spec("ipadic"):
        return "ja-mecab"
    return "char" if script else "13a"


def fitting_tokenizer(text: object, references: Sequence[str]) -> str:
    """`bleu_tokenizer` of a system's references.

    Args:
        text: Its target tokenizer, which may know the language; or None.
        references: The reference translations.
    """
    return bleu_tokenizer(getattr(text, "language", ""), references)
