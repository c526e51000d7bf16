"""Attention as a table that is looked up: Bahdanau, Cho and Bengio (2014), arXiv 1409.0473, "RNNsearch".

A bidirectional GRU writes one annotation h_j = [forward; backward] per source position. At every target position the
decoder asks with its last state s_{t-1}, reads a context c_t (:class:`AdditiveAttention`) and moves on:

    s_0 = tanh(W_s backward h_1)                                         initial state       (appendix A.2.2)
    c_t = attention(s_{t-1}, h)                                          what is read        (equations 5, 6)
    s_t = GRU(s_{t-1}, [E y_{t-1}; c_t])                                 new state           (appendix A.2.2)
    r_t = maxout(U_o s_{t-1} + V_o E y_{t-1} + C_o c_t)                  readout             (appendix A.2.2)
    p(y_t | y_<t, x) = softmax(W_o r_t)                                  output layer

The readout takes s_{t-1}, not s_t: the word is chosen from what was known before it, and s_t is needed from the next
position on only.

Deviations from the paper: the GRU's reset gate acts after the recurrent product, tanh(W x + r * (U s)), as in torch and
cuDNN, where the paper has tanh(W x + U (r * s)); dropout on embeddings, annotations and readout (0 gives the paper's
model); optional weight tying; Xavier initialisation as an alternative to appendix B; optionally the encoder reads the
words backwards, EOS last as ever (``reverse_source``): the control of the ablation of Sutskever et al. (2014), an
interface for which it should not matter. Annotations, and so the columns of attention, stand in the order of the
sentence all the same.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nmt.config import BahdanauConfig
from nmt.models.attention import AdditiveAttention
from nmt.models.base import Step, TranslationModel
from nmt.models.dropout import Dropout
from nmt.models.embedding import Embeddings
from nmt.models.memory import Memory, MemoryTable
from nmt.models.reversal import reverse_words

RECURRENT = ("encoder.weight_hh_l0", "encoder.weight_hh_l0_reverse", "cell.recurrent_gates.weight")


class Bahdanau(TranslationModel):
    """The state of a hypothesis is s_t, [rows, hidden_dim], kept in float32."""

    attends = True

    def __init__(self, config: BahdanauConfig, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__()
        self.initialization = config.initialization
        self.reverse_source = config.reverse_source
        embedding_dim, hidden_dim, annotation_dim = config.embedding_dim, config.hidden_dim, 2 * config.hidden_dim
        self.embeddings = Embeddings(
            source_vocabulary,
            target_vocabulary,
            embedding_dim,
            config.maxout_dim,
            config.tie_embeddings,
            output_bias=True,
        )
        self.encoder = nn.GRU(embedding_dim, hidden_dim, batch_first=True, bidirectional=True)
        self.initial = nn.Linear(hidden_dim, hidden_dim)  # W_s
        self.reader = AdditiveAttention(hidden_dim, annotation_dim, config.attention_dim)
        self.cell = SplitGRUCell(embedding_dim, annotation_dim, hidden_dim)
        readout_inputs = hidden_dim + embedding_dim + annotation_dim
        self.readout = nn.Linear(readout_inputs, 2 * config.maxout_dim)  # [U_o V_o C_o]
        self.dropout = Dropout(config.dropout)

    def initialize(self, generator: torch.Generator) -> None:
        """``paper`` is appendix B.1; ``xavier`` is Glorot and Bengio (2010) for each gate's matrix on its own."""
        fill = _fill_as_in_the_paper if self.initialization == "paper" else _fill_xavier
        for name, parameter in self.named_parameters():
            if parameter.dim() == 1:
                nn.init.zeros_(parameter)
            else:
                fill(name, parameter, generator)

    def encode(self, source: Tensor, source_lengths: Tensor) -> MemoryTable:
        """Annotations and their keys, in the order of the sentence whichever way it was read."""
        if self.reverse_source:
            source = reverse_words(source, source_lengths)
        positions = torch.arange(source.size(1), device=source.device)
        mask = positions < source_lengths[:, None]  # [batch, src_len]
        embedded = self.dropout(self.embeddings.source(source))  # [batch, src_len, embedding_dim]
        # Packed, so that the backward direction starts at each row's own last token and never reads padding.
        lengths = source_lengths.clamp(min=1).cpu()
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        annotations, _ = pad_packed_sequence(self.encoder(packed)[0], batch_first=True, total_length=source.size(1))
        if self.reverse_source:
            annotations = reverse_words(annotations, source_lengths)
        return self.reader.table(self.dropout(annotations), mask)  # annotations: [batch, src_len, 2 * hidden_dim]

    def init_state(self, memory: Memory) -> Tensor:
        """s_0 = tanh(W_s backward h_1), of what the backward GRU ends on: there it has read the whole sentence.

        That is word 1, or, with ``reverse_source``, the last word (EOS if there is no word), which then came first.
        """
        assert isinstance(memory, MemoryTable)
        first = memory.values[:, 0]  # [batch, annotation_dim]
        if self.reverse_source:
            last_word = (memory.mask.sum(dim=1) - 2).clamp(min=0)  # EOS stands behind it
            # No len() and no take_along_dim: in an exported program both fix the sizes that it was traced with.
            first = memory.values.gather(1, last_word[:, None, None].expand(-1, 1, memory.values.size(2)))[:, 0]
        backward = first.chunk(2, dim=-1)[1].masked_fill(memory.empty[:, None], 0.0)  # [batch, hidden_dim]
        return torch.tanh(self.initial(backward)).float()

    def step(self, previous: Tensor, state: Tensor, memory: Memory, with_attention: bool = False) -> Step:
        """Read, choose, move on."""
        assert isinstance(memory, MemoryTable)
        embedded = self.dropout(self.embeddings.target(previous))  # [rows, embedding_dim]
        context, weights = self.reader(state, memory)
        features = self._read_out(state, embedded, context)
        new_state = self.cell(self.cell.project_input(embedded), context, state)
        assert weights is not None
        return Step(features, new_state, weights[:, None, None] if with_attention else None)

    def decode(self, target_in: Tensor, memory: Memory) -> Tensor:
        """Only the recurrence is a loop: words come in before it and readouts go out after it, for all positions."""
        assert isinstance(memory, MemoryTable)
        embedded = self.dropout(self.embeddings.target(target_in))  # [batch, tgt_len, embedding_dim]
        state = self.init_state(memory)
        states, contexts = [], []
        for inputs in self.cell.project_input(embedded).unbind(dim=1):
            states.append(state)
            context, _ = self.reader(state, memory)
            contexts.append(context)
            state = self.cell(inputs, context, state)
        return self._read_out(torch.stack(states, dim=1), embedded, torch.stack(contexts, dim=1))

    def _read_out(self, state: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        """r_t, [..., maxout_dim], from s_{t-1}, E y_{t-1} and c_t."""
        pairs = self.readout(torch.cat([state, embedded, context], dim=-1))  # [..., 2 * maxout_dim]
        one, other = pairs.chunk(2, dim=-1)  # unit i and unit maxout_dim + i are a pair
        maxout: Tensor = self.dropout(torch.maximum(one, other))
        return maxout

    def project(self, features: Tensor) -> Tensor:
        """Logits [..., target_vocabulary]."""
        return self.embeddings.logits(features)

    def projection(self, words: Tensor) -> Callable[[Tensor], Tensor]:
        """Without computing what is not wanted."""
        return self.embeddings.logits_of(words)


def _fill_as_in_the_paper(name: str, matrix: Tensor, generator: torch.Generator) -> None:
    """Appendix B.1: recurrent matrices orthogonal, v zero, W_a and U_a Gaussian 0.001, all others Gaussian 0.01."""
    if name in RECURRENT:
        for gate in matrix.chunk(3):
            nn.init.orthogonal_(gate, generator=generator)
    elif name == "reader.score.weight":
        nn.init.zeros_(matrix)
    else:
        nn.init.normal_(matrix, std=0.001 if name.startswith("reader.") else 0.01, generator=generator)


def _fill_xavier(name: str, matrix: Tensor, generator: torch.Generator) -> None:
    """Xavier for the matrix of each gate; tables Gaussian with deviation dim^-1/2."""
    if name.startswith("embeddings."):
        nn.init.normal_(matrix, std=matrix.size(1) ** -0.5, generator=generator)
        return
    for part in matrix.chunk(3 if name.startswith(("encoder.", "cell.")) else 1):
        nn.init.xavier_uniform_(part, generator=generator)


class SplitGRUCell(nn.Module):
    """A GRU step whose input is [word; context], with the two parts' matrices apart.

    The word's part does not depend on the state: it is made for all positions at once, before the loop. Rows of every
    matrix are the reset gate r, the update gate z and the candidate n, in torch's order:

        r = sigmoid(W_r x + U_r s)    z = sigmoid(W_z x + U_z s)
        n = tanh(W_n x + r * (U_n s))
        s' = (1 - z) * n + z * s
    """

    def __init__(self, word_dim: int, context_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.word_gates = nn.Linear(word_dim, 3 * hidden_dim)
        self.context_gates = nn.Linear(context_dim, 3 * hidden_dim, bias=False)
        self.recurrent_gates = nn.Linear(hidden_dim, 3 * hidden_dim)

    def project_input(self, words: Tensor) -> Tensor:
        """The words' part of the gates, [..., 3 * hidden_dim], of word vectors [..., word_dim]."""
        gates: Tensor = self.word_gates(words)
        return gates

    def forward(self, word_gates: Tensor, context: Tensor, state: Tensor) -> Tensor:
        """New state [rows, hidden_dim], in the number format of ``state``."""
        reset, update, candidate = (word_gates + self.context_gates(context)).chunk(3, dim=-1)
        recurrent_reset, recurrent_update, recurrent_candidate = self.recurrent_gates(state).chunk(3, dim=-1)
        reset = torch.sigmoid(reset + recurrent_reset)
        update = torch.sigmoid(update + recurrent_update)
        candidate = torch.tanh(candidate + reset * recurrent_candidate)
        return candidate + update * (state - candidate)  # (1 - z) * n + z * s
