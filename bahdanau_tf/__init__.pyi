"""The public names and where they live: read by editors, type checkers and `__init__.py`."""

from bahdanau_tf import (
    data as data,
    evaluation as evaluation,
    exercises as exercises,
    layers as layers,
    losses as losses,
    models as models,
    optimizers as optimizers,
    options as options,
    plotting as plotting,
    search as search,
    serving as serving,
    text as text,
    tracing as tracing,
    training as training,
    translation as translation,
    translator as translator,
)
from bahdanau_tf.data import ParallelCorpus as ParallelCorpus
from bahdanau_tf.data.dataset import make_dataset as make_dataset
from bahdanau_tf.layers import (
    Attention as Attention,
    AttentionCell as AttentionCell,
    AttentionDecoder as AttentionDecoder,
    BackwardBridge as BackwardBridge,
    BahdanauAttention as BahdanauAttention,
    BidirectionalEncoder as BidirectionalEncoder,
    Bridge as Bridge,
    ConditionalDecoder as ConditionalDecoder,
    CopyBridge as CopyBridge,
    Copying as Copying,
    DotAttention as DotAttention,
    Encoded as Encoded,
    FixedContext as FixedContext,
    ForwardBridge as ForwardBridge,
    GeneralAttention as GeneralAttention,
    GRUCell as GRUCell,
    GRUResetAfterCell as GRUResetAfterCell,
    KerasCell as KerasCell,
    LinearReadout as LinearReadout,
    LocationAttention as LocationAttention,
    LSTMCell as LSTMCell,
    MaxoutReadout as MaxoutReadout,
    Memory as Memory,
    MonotonicAttention as MonotonicAttention,
    OutputWeights as OutputWeights,
    Readout as Readout,
    Recurrent as Recurrent,
    RecurrentCell as RecurrentCell,
    SentenceBridge as SentenceBridge,
    StackedCells as StackedCells,
    TanhCell as TanhCell,
    TanhReadout as TanhReadout,
    UnidirectionalEncoder as UnidirectionalEncoder,
    WordEmbedding as WordEmbedding,
    ZeroBridge as ZeroBridge,
)
from bahdanau_tf.losses import Perplexity as Perplexity, TokenCrossentropy as TokenCrossentropy
from bahdanau_tf.models import (
    Ensemble as Ensemble,
    RNNEncDec as RNNEncDec,
    RNNSearch as RNNSearch,
    Seq2SeqLSTM as Seq2SeqLSTM,
    StepwiseModel as StepwiseModel,
    TranslationModel as TranslationModel,
    from_preset as from_preset,
    token_log_probs as token_log_probs,
)
from bahdanau_tf.optimizers import (
    SGD as SGD,
    Adadelta as Adadelta,
    Adam as Adam,
    HalvedEveryHalfEpoch as HalvedEveryHalfEpoch,
    InverseSquareRoot as InverseSquareRoot,
    WarmupLinearDecay as WarmupLinearDecay,
)
from bahdanau_tf.options import Decoding as Decoding, Recipe as Recipe
from bahdanau_tf.plotting import (
    plot_alignment as plot_alignment,
    plot_trace as plot_trace,
    view_architecture as view_architecture,
    view_traces as view_traces,
)
from bahdanau_tf.search import (
    beam_search as beam_search,
    greedy_search as greedy_search,
    sample as sample,
)
from bahdanau_tf.system.language import set_language as set_language
from bahdanau_tf.text import (
    Dictionary as Dictionary,
    SubwordTokenizer as SubwordTokenizer,
    Vocabulary as Vocabulary,
    WordTokenizer as WordTokenizer,
)
from bahdanau_tf.tracing import (
    BeamTree as BeamTree,
    Trace as Trace,
    beam_tree as beam_tree,
    trace as trace,
)
from bahdanau_tf.training import fit as fit, train as train
from bahdanau_tf.translation import (
    Lexicon as Lexicon,
    Translation as Translation,
    learn_lexicon as learn_lexicon,
)
from bahdanau_tf.translator import Translator as Translator

__version__: str
__all__: list[str]
