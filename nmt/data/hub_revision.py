"""The first contact with the Hub: which revision of a data set there is, found out within the time we give it."""

import queue
import threading
from collections.abc import Callable
from typing import TypeVar

from nmt.config import HubData
from nmt.data.corpus import DataError
from nmt.data.hub_http import PASSING, one_line

Result = TypeVar("Result")


class UnreachableError(Exception):
    """The Hub did not answer."""


def find_revision(config: HubData) -> str:
    """Commit of the data set, which all splits are then read from.

    Raises:
        DataError: the Hub answers that there is no such data set or revision, or not for us.
        UnreachableError: it does not answer.
        HfHubHTTPError: it answers with another error, which may pass.
    """
    import huggingface_hub
    from huggingface_hub import errors

    try:
        info = huggingface_hub.HfApi().dataset_info(config.dataset, revision=config.revision, timeout=config.timeout)
    except errors.GatedRepoError:
        raise DataError(
            f"data.dataset: {config.dataset} asks for consent: see its page on the Hub, then log in"
        ) from None
    except errors.RevisionNotFoundError:
        raise DataError(f"data.revision: {config.dataset} has no revision {config.revision!r}") from None
    except errors.RepositoryNotFoundError:
        raise DataError(f"data.dataset: no data set {config.dataset!r} on the Hub (and no such folder)") from None
    except errors.HFValidationError as error:
        raise DataError(f"data.dataset: {one_line(error)}") from None
    except errors.HfHubHTTPError as error:
        if error.response is not None and error.response.status_code in PASSING:
            raise
        raise UnreachableError(f"{type(error).__name__}: {one_line(error)}") from None
    except Exception as error:  # refused, no route, no name, offline mode, a proxy's page in place of an answer
        raise UnreachableError(f"{type(error).__name__}: {one_line(error)}") from None
    return str(info.sha)


def within(seconds: float, work: Callable[[], Result]) -> Result:
    """Result of ``work``, done in a thread; what it raises is raised here.

    Raises:
        UnreachableError: no result within ``seconds``. The thread is left to itself: a name look-up cannot be stopped.
    """
    answer: queue.SimpleQueue[tuple[list[Result], BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            answer.put(([work()], None))
        except BaseException as error:
            answer.put(([], error))

    threading.Thread(target=run, daemon=True).start()
    try:
        result, error = answer.get(timeout=seconds)
    except queue.Empty:
        raise UnreachableError(f"no answer in {seconds:g} s") from None
    if error is not None:
        raise error
    return result[0]
