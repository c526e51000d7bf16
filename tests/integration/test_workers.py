"""Engines in other processes: the same answers in the same order, errors that arrive, processes that end."""

import os
import queue
import signal
import threading
from collections.abc import Iterable, Iterator
from functools import partial

import pytest
import torch

from nmt.engine import Engine, Request, TorchEngine
from nmt.search import Hypothesis
from nmt.workers import WorkerEngine
from tests.fakes import AutomatonModel
from tests.oracles import options


def automaton(seed: int = 1) -> Engine:
    return TorchEngine([AutomatonModel(seed=seed, vocabulary=20)], torch.device("cpu"), "fp32")


class Echo:
    """An engine whose answers are as long as the requests are."""

    def run(self, requests: Iterable[Request]) -> Iterator[list[list[Hypothesis]]]:
        for request in requests:
            yield [[Hypothesis(list(source), 0.0, 0.0, True)] for source in request.sources]


def failing() -> Engine:
    raise ValueError("no such checkpoint")


def dying() -> Engine:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def request(number: int, size: int = 3) -> Request:
    sources = [[4 + (number + place) % 12] * (1 + (number * place) % 5) for place in range(size)]
    return Request(sources, options(beam_size=2, max_length_b=6), n_best=2)


@pytest.fixture(scope="module")
def two() -> Iterator[WorkerEngine]:
    engine = WorkerEngine(automaton, workers=2)
    yield engine
    engine.close()


def test_the_same_answers_in_the_same_order(two: WorkerEngine) -> None:
    requests = [request(number, size=1 + number % 7) for number in range(30)]
    assert list(two.run(requests)) == list(automaton().run(requests))


def test_no_requests(two: WorkerEngine) -> None:
    assert list(two.run([])) == []


def test_an_answer_does_not_wait_for_the_next_request(two: WorkerEngine) -> None:
    asked: queue.Queue[Request | None] = queue.Queue()
    answers = two.run(iter(asked.get, None))
    for number in range(3):
        asked.put(request(number))
        [expected] = automaton().run([request(number)])
        assert next(answers) == expected  # nothing else has been asked
    asked.put(None)
    assert list(answers) == []


def test_requests_are_not_taken_long_before_they_can_be_worked_on(two: WorkerEngine) -> None:
    taken = 0

    def requests() -> Iterator[Request]:
        nonlocal taken
        for number in range(200):
            taken += 1
            yield request(number)

    for given, _ in enumerate(two.run(requests())):
        assert taken - given < 20


def test_a_refused_request_is_an_error_here_and_the_next_run_works(two: WorkerEngine) -> None:
    bad = request(1)._replace(n_best=5)
    with pytest.raises(ValueError, match="--n-best"):
        list(two.run([request(0), bad, request(2), request(3)]))
    assert len(list(two.run([request(4)]))) == 1


def test_an_error_of_the_requests_arrives(two: WorkerEngine) -> None:
    def requests() -> Iterator[Request]:
        yield request(0)
        yield request(1)
        raise ValueError("line 3: not UTF-8")

    answers = two.run(requests())
    assert [next(answers), next(answers)] == list(automaton().run([request(0), request(1)]))
    with pytest.raises(ValueError, match="line 3"):
        next(answers)
    assert len(list(two.run([request(4)]))) == 1


def test_answers_that_nobody_fetched_do_not_go_to_the_next_run(two: WorkerEngine) -> None:
    first = two.run([request(number) for number in range(10)])
    next(first)
    first.close()
    assert list(two.run([request(5)])) == list(automaton().run([request(5)]))


def test_an_engine_that_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="no such checkpoint"):
        WorkerEngine(failing, workers=2)


def test_a_process_that_is_killed_at_the_start() -> None:
    with pytest.raises(OSError, match=r"SIGKILL.*--workers"):
        WorkerEngine(dying, workers=1)


def test_a_process_that_is_killed_on_the_way() -> None:
    engine = WorkerEngine(partial(automaton, seed=2), workers=2)
    answers: Iterator[list[list[Hypothesis]]] = engine.run(request(number) for number in range(1000))
    next(answers)
    victim = engine._workers[1].process
    assert victim.pid is not None
    os.kill(victim.pid, signal.SIGKILL)
    with pytest.raises(OSError, match="SIGKILL"):
        list(answers)
    engine.close()
    assert not any(worker.process.is_alive() for worker in engine._workers)


def test_close_ends_the_processes_and_threads() -> None:
    engine = WorkerEngine(automaton, workers=1)
    list(engine.run([request(1)]))
    process = engine._workers[0].process
    engine.close()
    assert not process.is_alive()
    assert threading.active_count() < 20


def test_requests_and_answers_that_no_pipe_holds() -> None:
    engine = WorkerEngine(Echo, workers=1)
    asked = [Request([[number] * 400_000], options(beam_size=1, max_length_b=3)) for number in range(6)]
    assert [hypothesis.tokens for [[hypothesis]] in engine.run(asked)] == [one.sources[0] for one in asked]
    engine.close()


def test_no_workers() -> None:
    with pytest.raises(ValueError, match="--workers"):
        WorkerEngine(automaton, workers=0)
