"""Public corpora: where they are, and how they are fetched and put together."""

from bahdanau_tf.corpora.public.assembly import get_corpus

__all__ = ["get_corpus"]
