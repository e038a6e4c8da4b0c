"""The flags of the commands that score translations."""

from __future__ import annotations

from absl import flags as absl_flags

GROUP = "Scores"


def define_bleu(flags: absl_flags.FlagValues) -> None:
    """Defines --tokenize and --nfc."""
    absl_flags.DEFINE_string(
        "tokenize",
        None,
        "sacreBLEU's tokenizer: 13a, none for tokenized text, zh, ja-mecab, "
        "char, ...; default: the one that fits the script of the references, "
        "then the language",
        flag_values=flags,
        module_name=GROUP,
    )
    absl_flags.DEFINE_bool(
        "nfc",
        True,
        "whether translations and references are compared in composed "
        "characters (Unicode's NFC); if not, as they come",
        flag_values=flags,
        module_name=GROUP,
    )


def define_scores(flags: absl_flags.FlagValues) -> None:
    """Defines --tokenize, --nfc and --ignore_case."""
    define_bleu(flags)
    absl_flags.DEFINE_bool(
        "ignore_case",
        False,
        "whether case is ignored",
        flag_values=flags,
        module_name=GROUP,
    )
