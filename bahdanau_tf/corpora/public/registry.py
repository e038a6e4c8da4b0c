"""Public parallel corpora: address, checksum, licence and citation of each.

GitHub addresses name a commit, from which their checksums were computed. Checksums of the WMT
archives are those of TensorFlow Datasets (url_checksums) and, for the test set, of sacreBLEU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Download:
    """A file to download."""

    address: str
    checksum: str = ""  # "sha256:" or "md5:" and hexadecimal digits; "" if unknown
    size: int = 0  # in bytes; 0 if unknown

    @property
    def name(self) -> str:
        return self.address.rpartition("/")[2]


@dataclass(frozen=True)
class Text:
    """One side of a parallel text, within a download."""

    download: Download
    member: str = ""  # its name in the archive; "" if the file is not an archive
    column: int | None = None  # from 0, of a tab-separated file; None if each line is a sentence


@dataclass(frozen=True)
class Part:
    """A parallel text of a split such as "train"; the parts of a split are concatenated."""

    split: str
    source: Text
    target: Text


@dataclass(frozen=True)
class Corpus:
    """A public parallel corpus; its folder has its name."""

    name: str
    languages: tuple[str, str]  # codes, which are the files' extensions, too
    summary: str
    licence: str  # or "none stated"
    citation: str
    homepage: str
    parts: tuple[Part, ...]
    held_out: int = 0  # size of dev and of test, taken out of "train"; 0 if it has its own
    checksums: Mapping[str, str] = field(default_factory=dict)  # SHA-256 of its files, if known
    tried: str = ""  # the day on which its addresses last worked; "" if they were never tried

    @property
    def downloads(self) -> tuple[Download, ...]:
        """The files to fetch, each once."""
        texts = [t for part in self.parts for t in (part.source, part.target)]
        return tuple(dict.fromkeys(text.download for text in texts))

    @property
    def splits(self) -> tuple[str, ...]:
        if self.held_out:
            return ("train", "dev", "test")
        return tuple(dict.fromkeys(part.split for part in self.parts))

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(f"{split}.{language}" for split in self.splits for language in self.languages)


def _github(repository: str, path: str, sha256: str = "", size: int = 0) -> Download:
    address = f"https://raw.githubusercontent.com/{repository}/{path}"
    return Download(address, f"sha256:{sha256}", size)


def _rows(table: str, columns: int) -> list[list[str]]:
    """The cells of a table; where its lines end means nothing."""
    cells = table.split()
    return [cells[start : start + columns] for start in range(0, len(cells), columns)]


# Name, bytes and SHA-256 as compressed, SHA-256 of the text.
_MULTI30K_FILES = _rows(
    """
train.en 568929 d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f
    460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6
val.en 21650 14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28
    1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227
test_2016_flickr.en 21077 611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9
    399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182
train.fr 604242 622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c
    5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d
val.fr 23001 ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9
    5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc
test_2016_flickr.fr 22310 6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90
    cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6
""",
    4,
)


def _multi30k() -> Corpus:
    commit = "multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a"
    text = {
        file: Text(_github(commit, f"data/task1/raw/{file}.gz", sha256, int(size)))
        for file, size, sha256, _ in _MULTI30K_FILES
    }
    return Corpus(
        name="multi30k",
        languages=("en", "fr"),
        summary="captions of pictures, 29,000 pairs of about 12 words, raw",
        licence=(
            "none stated; its README: partly derived from Flickr30K, for "
            "non-commercial research and education"
        ),
        citation=(
            "Elliott, Frank, Sima'an and Specia 2016, Multi30K, VL'16, "
            "W16-3210; French: Elliott et al. 2017, WMT17, W17-4718"
        ),
        homepage="https://github.com/multi30k/dataset",
        parts=tuple(
            Part(split, text[f"{split}.en"], text[f"{split}.fr"])
            for split in ("train", "val", "test_2016_flickr")
        ),
        checksums={file: sha256 for file, *_, sha256 in _MULTI30K_FILES},
    )


_ENJA = _rows(
    """
train.en 1701356 148b05dcd28638fe20ee84f2b1127001c80982be352007dda241fb759adadc76
train.ja 2784447 fc81a1434349ec98a449d7ae9cd2530057f689637684ecfed3501ea6a8a07ecc
dev.en 17054 04a2673449770657fd5e3b963cb856be3130923212b6db8ac7eaeef18f06c041
dev.ja 27781 cd534f56b8639dc130f86a365e5ec0aa70042000bdd740a622fbbf8b6be4acca
test.en 17301 45edb380749ec2b49cca7618fc5a7595fc9f791180672ba466b90c873a4aa8bf
test.ja 27793 d37dc460a81b064e4106c8913eb11fa300da05cf3f58a7a5bbfec7e20947ddef
""",
    3,
)


def _small_parallel_enja() -> Corpus:
    commit = "odashi/small_parallel_enja/312408a11c5fbcbc09443bebb18121f7efdcd61e"
    text = {file: Text(_github(commit, file, sha256, int(size))) for file, size, sha256 in _ENJA}
    return Corpus(
        name="small_parallel_enja",
        languages=("ja", "en"),
        summary="50,000 pairs of 4 to 16 words, tokenized, in lower case",
        licence="none stated; its README: extracted from the TANAKA Corpus",
        citation="Oda, small_parallel_enja: 50k En/Ja Parallel Corpus for Testing SMT Methods",
        homepage="https://github.com/odashi/small_parallel_enja",
        parts=tuple(
            Part(split, text[f"{split}.ja"], text[f"{split}.en"])
            for split in ("train", "dev", "test")
        ),
        checksums={file: sha256 for file, _, sha256 in _ENJA},
    )


def _manythings(target: str, download: Download, member: str, day: str, held_out: int) -> Corpus:
    """Tatoeba as exported by ManyThings.org: columns English and other."""
    return Corpus(
        name=f"tatoeba-en-{target}",
        languages=("en", target),
        summary=(
            f"everyday sentences of Tatoeba, ManyThings.org export of {day}, "
            "raw; dev and test by a hash of the English sentence"
        ),
        licence="CC BY 2.0 (France)",
        citation="Attribution: www.manythings.org/anki and tatoeba.org",
        homepage="https://www.manythings.org/anki/",
        parts=(Part("train", Text(download, member, column=0), Text(download, member, column=1)),),
        held_out=held_out,
    )


def _opus_tatoeba(target: str) -> Corpus:
    """Tatoeba as of 2023 from OPUS, whose archives have no known checksum."""
    pair = "-".join(sorted(("en", target)))
    base = "https://object.pouta.csc.fi/OPUS-Tatoeba/v2023-04-12/moses"
    download = Download(f"{base}/{pair}.txt.zip")
    sides = (Text(download, f"Tatoeba.{pair}.{language}") for language in ("en", target))
    return Corpus(
        name=f"opus-tatoeba-en-{target}",
        languages=("en", target),
        summary=(
            "everyday sentences of Tatoeba, OPUS release v2023-04-12, raw; "
            "dev and test by a hash of the English sentence"
        ),
        licence="CC BY 2.0 FR",
        citation=(
            "Tiedemann 2012, Parallel Data, Tools and Interfaces in OPUS, LREC 2012; tatoeba.org"
        ),
        homepage="https://opus.nlpl.eu/",
        parts=(Part("train", *sides),),
        held_out=1000,
    )


# Folder and file, the texts in it without their language, bytes, SHA-256.
_WMT14_TRAIN = _rows(
    """
wmt13/training-parallel-europarl-v7.tgz training/europarl-v7.fr-en.{}
    657632379 0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7
wmt14/training-parallel-nc-v9.tgz training/news-commentary-v9.fr-en.{}
    80418416 cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485
wmt13/training-parallel-un.tgz un/undoc.2000.fr-en.{}
    2365634246 29141b5c1eba149a94f7a59d3b1a834b2e47fe0f8758d68dcd77a3d3f497ee47
wmt13/training-parallel-commoncrawl.tgz commoncrawl.fr-en.{}
    918311367 c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5
wmt10/training-giga-fren.tar giga-fren.release2.fixed.{}.gz
    2595102720 3ff8319f6919393520559bfbc7ad6a747ec81b3abc7be9993b338d4b017b4d9a
""",
    4,
)


def _wmt14() -> Corpus:
    parts = []
    for path, member, size, sha256 in _WMT14_TRAIN:
        file = Download(f"https://www.statmt.org/{path}", f"sha256:{sha256}", int(size))
        sides = (Text(file, member.format(side)) for side in ("en", "fr"))
        parts.append(Part("train", *sides))
    dev = Download(
        "https://data.statmt.org/wmt19/translation-task/dev.tgz",
        "sha256:7a7deccf82ebb05ba508dba5eb21356492224e8f630ec4f992132b029b4b25e7",
        38_654_961,
    )
    for year in (2012, 2013):
        sides = (Text(dev, f"dev/newstest{year}.{s}") for s in ("en", "fr"))
        parts.append(Part("dev", *sides))
    test = Download(
        "https://www.statmt.org/wmt14/test-full.tgz", "md5:a8cd784e006feb32ac6f3d9ec7eb389a"
    )
    sides = (Text(test, f"test-full/newstest2014-fren-{end}.sgm") for end in ("src.en", "ref.fr"))
    parts.append(Part("test", *sides))
    return Corpus(
        name="wmt14-en-fr",
        languages=("en", "fr"),
        summary=(
            "the training data of Bahdanau et al. 2015, before selection: Europarl "
            "v7, News Commentary v9, UN, Common Crawl, 10^9 French-English; "
            "dev newstest2012 + 2013, test newstest2014 (3,003 pairs)"
        ),
        licence=(
            "none stated for the whole; later WMT pages: free for research, "
            "ask the owners of each part about other uses"
        ),
        citation=(
            "Bojar et al. 2014, Findings of the 2014 Workshop on Statistical "
            "Machine Translation, W14-3302"
        ),
        homepage="https://www.statmt.org/wmt14/translation-task.html",
        parts=tuple(parts),
    )


_FRA_ENG = _github(
    "modelexlab/data/adddaf33ac35572bcfeb421efec29435e7ea9332",
    "fra-eng.zip",
    "161c93f18da3a7e6df611ed961426613260de8af06ccf8c79c977afe5135ac44",
    3_424_571,
)
_KOR_ENG = _github(
    "jh868/pytorch_study/27eb70612e526ac7866dc0e9581299a7b6b4a57e",
    "kor-eng/kor.txt",
    "35e30cc324d286dedfdbd16ba085c24de828bfe7fedd7b77aec53d7d3f890e45",
    567_512,
)

CORPORA = {
    corpus.name: corpus
    for corpus in (
        _multi30k(),
        _manythings("fr", _FRA_ENG, "fra-eng/fra.txt", "2019-04-07", 2000),
        _manythings("ko", _KOR_ENG, "", "2022-09-06", 250),
        *map(_opus_tatoeba, ("de", "es", "fr", "ja", "ko")),
        _small_parallel_enja(),
        _wmt14(),
    )
}


def find_corpus(name: str) -> Corpus:
    """The corpus with this name; the ValueError for another one lists all names."""
    if name not in CORPORA:
        raise ValueError(f"no corpus {name!r}, wanted one of {', '.join(CORPORA)}")
    return CORPORA[name]
