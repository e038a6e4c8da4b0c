"""Operations on rows of strings, ids and offsets, for all tokenizers."""

from __future__ import annotations

import tensorflow as tf

_SPACES = r"[\pZ\t-\r\x1c-\x1f\x85]"  # what `str.isspace` takes as spaces
_SIZES = (0, 0x80, 0x800, 0x10000)  # the least code of 1, 2, 3 and 4 bytes
_REPLACEMENT, _WIDTH = 0xFFFD, 3  # U+FFFD and its bytes


def as_strings(strings: tf.Tensor) -> tf.Tensor:
    """Raises ValueError unless strings are a vector, string [B], including in the graph."""
    strings = tf.convert_to_tensor(strings, tf.string)
    if strings.shape.rank not in (None, 1):
        raise ValueError(
            f"Tokenizer: strings has the shape {strings.shape}, wanted [B], a list of strings"
        )
    return tf.ensure_shape(strings, [None])


def count_words(strings: tf.Tensor) -> tf.Tensor:
    """Numbers of words between spaces, as of `str.split`, [N] -> int64 [N].

    `tf.strings.split` by itself takes ASCII spaces only.
    """
    return tf.strings.split(tf.strings.regex_replace(strings, _SPACES, " ")).row_lengths()


def before(x: tf.Tensor, edge: object) -> tf.Tensor:
    """Shifts values by one to the right: [N] -> [N]; the first is `edge`."""
    return tf.concat([tf.cast([edge], x.dtype), x], 0)[:-1]


def after(x: tf.Tensor, edge: object) -> tf.Tensor:
    """Shifts values by one to the left: [N] -> [N]; the last is `edge`."""
    return tf.concat([x, tf.cast([edge], x.dtype)], 0)[1:]


def is_first(rows: tf.Tensor) -> tf.Tensor:
    """True where ascending row numbers change, at the first of a row: [N]."""
    return rows != before(rows, -1)


def row_ids(rows: tf.RaggedTensor) -> tf.Tensor:
    """The row number of each value: integer [N], ascending.

    `RaggedTensor.value_rowids` returns the same, but in a graph it builds a mask of the number of
    rows times the longest row: one token of 8 KiB among as many short ones needs 0.5 GB.
    """
    ends = rows.row_splits[1:]
    count = tf.size(rows.values, ends.dtype)
    ended = tf.scatter_nd(ends[:, None], tf.ones_like(ends), [count + 1])
    return tf.cumsum(ended)[:-1]


def masked(rows: tf.RaggedTensor, mask: tf.RaggedTensor) -> tf.RaggedTensor:
    """Keeps the values where a mask of the same rows is true.

    Unlike `tf.ragged.boolean_mask` it does not use the costly `RaggedTensor.value_rowids`.
    """
    splits = rows.row_splits
    kept = tf.concat([[0], tf.cumsum(tf.cast(mask.values, splits.dtype))], 0)
    return tf.RaggedTensor.from_row_splits(
        tf.gather(rows.values, tf.where(mask.values)[:, 0]), tf.gather(kept, splits), validate=False
    )


def append_end(ids: tf.RaggedTensor, eos_id: int) -> tf.RaggedTensor:
    """Appends the end symbol to each row: ragged int32 [B, (T)]."""
    splits = ids.row_splits
    splits += tf.range(tf.size(splits, splits.dtype))
    places = row_ids(ids)
    places += tf.range(tf.size(places, places.dtype))
    values = tf.tensor_scatter_nd_update(tf.fill([splits[-1]], eos_id), places[:, None], ids.values)
    return tf.RaggedTensor.from_row_splits(values, splits, validate=False)


def turned(rows: tf.RaggedTensor) -> tf.RaggedTensor:
    """Reverses each row: ragged [B, (T)]."""
    first_plus_last = rows.row_starts() + rows.row_limits() - 1
    places = tf.gather(first_plus_last, row_ids(rows))
    places -= tf.range(tf.size(places, places.dtype))
    return rows.with_values(tf.gather(rows.values, places))


def until_end(ids: tf.Tensor | tf.RaggedTensor, eos_id: int, pad_id: int) -> tf.RaggedTensor:
    """True for ids before the row's first end symbol that are not padding.

    Integer [B, T] or ragged [B, (T)] -> ragged bool [B, (T)].
    """
    ids = as_rows(ids)
    ends = tf.cumsum(tf.cast(ids.values == eos_id, tf.int32))
    ends_before = tf.gather(tf.concat([[0], ends], 0), ids.row_starts())
    before_end = ends == tf.gather(ends_before, row_ids(ids))
    return ids.with_values(before_end & (ids.values != pad_id))


def as_rows(x: tf.Tensor | tf.RaggedTensor) -> tf.RaggedTensor:
    """[B, T] as ragged [B, (T)], unless it is ragged; raises ValueError for another shape."""
    if isinstance(x, tf.RaggedTensor):
        return x
    x = tf.convert_to_tensor(x)
    if x.shape.rank not in (None, 2):
        raise ValueError(
            f"Tokenizer: ids has the shape {x.shape}, wanted [B, T], a row of ids for each string"
        )
    return tf.RaggedTensor.from_tensor(tf.ensure_shape(x, [None, None]))


def spans(lengths: tf.RaggedTensor, gaps: tf.RaggedTensor) -> tuple[tf.RaggedTensor, ...]:
    """Byte offsets of tokens of these lengths, written one after another behind gaps.

    Two ragged int32 [B, (T)]: where each token starts, and where it ends.
    """
    ends = tf.cumsum(lengths.values + gaps.values)
    ends_before = tf.gather(tf.concat([[0], ends], 0), lengths.row_starts())
    ends -= tf.gather(ends_before, row_ids(lengths))
    return lengths.with_values(ends - lengths.values), lengths.with_values(ends)


def surfaces(strings: tf.Tensor, starts: tf.RaggedTensor, ends: tf.RaggedTensor) -> tf.RaggedTensor:
    """Cuts tokens out of strings, which need not be valid UTF-8: ragged string [B, (T)].

    The offsets are in bytes, ragged int32 [B, (T)].
    """
    # tf.strings.substr would need a copy of the string for each of its tokens.
    data = tf.strings.bytes_split(strings)
    shift = tf.cast(data.row_starts(), tf.int32)
    shift = tf.gather(shift, row_ids(starts))
    spans = tf.ragged.range(starts.values + shift, ends.values + shift)
    pieces = tf.gather(data.values, spans.values)
    joined = tf.strings.unsorted_segment_join(pieces, row_ids(spans), tf.size(starts.values))
    return starts.with_values(joined)


def replaced_offsets(texts: tf.Tensor, offsets: tf.RaggedTensor) -> tf.RaggedTensor:
    """Where offsets are once U+FFFD is written for bytes that are not valid.

    Offsets are in bytes of `texts`, ragged int32 [B, (T)]; one between bytes that are replaced
    together moves behind them.
    """
    lengths = tf.strings.length(texts)
    firsts = tf.cumsum(lengths + 1, exclusive=True)  # of rows, in one order
    decoded, places = tf.strings.unicode_decode_with_offsets(texts, "UTF-8", errors="replace")
    codes, rows = decoded.values, row_ids(decoded)
    sizes = sum(tf.cast(codes >= least, tf.int32) for least in _SIZES)
    written = tf.cumsum(sizes, exclusive=True)
    first = tf.gather(tf.concat([written, [0]], 0), decoded.row_starts())
    written -= tf.gather(first, rows)
    places = tf.gather(firsts, rows) + tf.cast(places.values, tf.int32)
    # One character more, since there may be none.
    codes, written, places = (tf.concat([values, [0]], 0) for values in (codes, written, places))
    own = row_ids(offsets)
    wanted = tf.gather(firsts, own) + offsets.values
    at = tf.maximum(tf.searchsorted(places[:-1], wanted, "right") - 1, 0)
    inside = wanted - tf.gather(places, at)
    is_new = tf.gather(codes, at) == _REPLACEMENT
    inside = tf.where(is_new & (inside > 0), _WIDTH, inside)
    moved = tf.gather(written, at) + inside
    return offsets.with_values(tf.where(tf.gather(lengths, own) > 0, moved, 0))
