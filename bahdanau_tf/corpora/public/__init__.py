"""Public corpora: their addresses, download and assembly."""

from bahdanau_tf.corpora.public.assembly import get_corpus

__all__ = ["get_corpus"]
