"""The ops that a stock TensorFlow Serving can run, and a check for others."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path

import tensorflow as tf

from bahdanau_tf.serving.saved_model import read_graphs

# Ops of TensorFlow 2.20 that may be useful for translation. None of them runs
# Python, prints, needs a device other than a CPU, or accesses files (except
# those of the variables). `make check-serving` looks them up in the wheel of
# TensorFlow 2.20.0.
_CORE = """
Assert CheckNumerics Const EnsureShape Identity IdentityN NoOp Placeholder
PlaceholderWithDefault PreventGradient StopGradient

AssignVariableOp DisableCopyOnRead MergeV2Checkpoints ReadVariableOp
ResourceGather RestoreV2 SaveV2 ShardedFilename VarHandleOp VarIsInitializedOp

Case Enter Exit If LoopCond Merge NextIteration PartitionedCall
StatefulPartitionedCall StatelessCase StatelessIf StatelessWhile Switch While

EmptyTensorList HashTableV2 InitializeTableFromTextFileV2 InitializeTableV2
LookupTableExportV2 LookupTableFindV2 LookupTableImportV2 LookupTableSizeV2
TensorListConcatV2 TensorListElementShape TensorListFromTensor
TensorListGather TensorListGetItem TensorListLength TensorListPopBack
TensorListPushBack TensorListReserve TensorListResize TensorListScatterV2
TensorListSetItem TensorListStack

BatchToSpaceND BroadcastArgs BroadcastTo ConcatV2 ExpandDims Fill
InvertPermutation MatrixBandPart MatrixDiagV3 MirrorPad Pack Pad PadV2 Rank
Reshape ReverseSequence ReverseV2 Shape ShapeN Size Slice SpaceToBatchND Split
SplitV Squeeze StridedSlice Tile Transpose Unpack

ArgMax ArgMin DynamicPartition DynamicStitch Gather GatherNd GatherV2 ListDiff
LowerBound OneHot RaggedGather RaggedRange RaggedTensorFromVariant
RaggedTensorToTensor RaggedTensorToVariant Range ScatterNd Select SelectV2
SparseToDense TensorScatterAdd TensorScatterMax TensorScatterMin
TensorScatterUpdate TopKV2 Unique UniqueV2 UpperBound Where

Abs Acos Add AddN AddV2 Asin Atan Atan2 Bincount Bitcast BitwiseAnd BitwiseOr
BitwiseXor Bucketize Cast Ceil ClipByValue Cos Cosh Cumprod Cumsum
CumulativeLogsumexp DenseBincount Div DivNoNan Erf Erfc Exp Expm1 Floor
FloorDiv FloorMod Invert L2Loss LeftShift LinSpace Log Log1p Max Maximum Mean
Min Minimum Mod Mul MulNoNan Neg OnesLike Pow Prod RealDiv Reciprocal
RightShift Rint Round Rsqrt SegmentMax SegmentMean SegmentMin SegmentProd
SegmentSum Sign Sin Sinh Sqrt Square SquaredDifference Sub Sum Tan TruncateDiv
TruncateMod UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd
UnsortedSegmentSum Xdivy Xlogy ZerosLike

All Any ApproximateEqual Equal Greater GreaterEqual IsFinite IsInf IsNan Less
LessEqual LogicalAnd LogicalNot LogicalOr NotEqual

AvgPool BatchMatMul BatchMatMulV2 BatchMatMulV3 BiasAdd Conv2D
DepthwiseConv2dNative Einsum Elu FusedBatchNormV3 InTopKV2 LeakyRelu
LogSoftmax MatMul MaxPool Relu Relu6 ReluGrad Selu Sigmoid SigmoidGrad Softmax
SoftmaxCrossEntropyWithLogits Softplus Softsign
SparseSoftmaxCrossEntropyWithLogits Tanh TanhGrad

StatelessMultinomial StatelessRandomGetAlg StatelessRandomGetKeyCounter
StatelessRandomNormal StatelessRandomNormalV2 StatelessRandomUniform
StatelessRandomUniformIntV2 StatelessRandomUniformV2

AsString DecodeBase64 DecodePaddedRaw DecodeRaw EncodeBase64 ReduceJoin
RegexFullMatch RegexReplace StaticRegexFullMatch StaticRegexReplace
StringFormat StringJoin StringLength StringLower StringNGrams StringSplit
StringSplitV2 StringStrip StringToHashBucketFast StringToHashBucketStrong
StringToNumber StringUpper Substr UnicodeDecode UnicodeDecodeWithOffsets
UnicodeEncode UnicodeScript UnicodeTranscode UnsortedSegmentJoin
"""
# Ops of TensorFlow Text 2.20, which is built into the stock server.
_TEXT = """
CaseFoldUTF8 NormalizeUTF8 NormalizeUTF8WithOffsetsMap
FastWordpieceTokenizeWithOffsets TFText>FastWordpieceDetokenize
RegexSplitWithOffsets TFText>WhitespaceTokenizeWithOffsetsV2

SentencepieceDetokenizeOp SentencepieceIdToStringOp SentencepieceOp
SentencepieceStringToIdOp SentencepieceTokenizeOp
SentencepieceTokenizeWithOffsetsOp SentencepieceVocabSizeOp
"""
CORE_OPS = frozenset(_CORE.split())
TEXT_OPS = frozenset(_TEXT.split())
XLA = "_XlaMustCompile"  # the stock server has XLA disabled


def check_operations(folder: Path) -> None:
    """Refuses a SavedModel that a stock TensorFlow Serving 2.20 cannot run.

    Raises:
        ValueError: The graph has another op, or one that XLA must compile. The
            message names op and node.
    """
    wrong = {}
    for operation, place, compiled in _operations(folder):
        if compiled:
            wrong[operation] = f"{place}, is to be compiled by XLA"
        elif operation not in CORE_OPS | TEXT_OPS:
            wrong[operation] = place
    if wrong:
        listed = "; ".join(f"{op} ({where})" for op, where in wrong.items())
        raise ValueError(
            f"export: the graph has {listed}; wanted only ops of a stock "
            "TensorFlow Serving 2.20, listed in "
            "bahdanau_tf/serving/operations.py"
        )


def operations(folder: Path) -> list[str]:
    """The names of the ops in a SavedModel, sorted."""
    return sorted({operation for operation, _, _ in _operations(folder)})


def _operations(folder: Path) -> Iterator[tuple[str, str, bool]]:
    """Yields each op, where it is, and whether XLA must compile it."""
    saved = read_graphs(folder)
    for meta_graph in saved.meta_graphs:
        graph = meta_graph.graph_def
        yield from _nodes(graph.node, "", False)
        for function in graph.library.function:
            name = function.signature.name
            compiled = _is_true(function.attr, XLA)
            yield from _nodes(function.node_def, f" of {name}", compiled)


def _nodes(
    nodes: Iterable[tf.compat.v1.NodeDef], owner: str, compiled: bool
) -> Iterator[tuple[str, str, bool]]:
    for node in nodes:
        yield (
            node.op,
            f"node {node.name}{owner}",
            compiled or _is_true(node.attr, XLA),
        )


def _is_true(
    attributes: Mapping[str, tf.compat.v1.AttrValue], name: str
) -> bool:
    return name in attributes and bool(attributes[name].b)
