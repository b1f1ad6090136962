"""The option --dask: commands that a Dask cluster runs, a task for each archive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from gompfs.cli.application import print_error
from gompfs.cli.command_line import option
from gompfs.errors import EntryNotFoundError, GompfsError, OptionError, display_path, pip_install
from gompfs.light_types import TYPE_CHECKING

if TYPE_CHECKING:
    from distributed import Client

    from gompfs.cli.statistic_output import OutputForm
    from gompfs.integrations.dask import SearchOutput
    from gompfs.search.query import SearchQuery
    from gompfs.statistics.tasks import Task

DASK = "--dask"

dask_option = option(
    DASK,
    "scheduler",
    metavar="ADDRESS",
    help="Have the workers of the Dask scheduler at ADDRESS do the work, a task for each ARCHIVE: a path that leads to "
    "the same file on all workers, or a URL of a store that fsspec knows.",
)


def print_statistic_of_cluster(
    scheduler: str,
    archives: Sequence[str],
    task: Task,
    name: str,
    *,
    top: int,
    ngram_length: int,
    engine: str,
    output: OutputForm,
) -> None:
    """Prints a statistic of all archives. Raises GompfsError."""
    from gompfs.cli.statistic_output import print_report
    from gompfs.statistics.report import FixedReport

    with _connected(scheduler) as client:
        from gompfs.integrations.dask import stats_output

        task_graph = stats_output(archives, name, top=top, ngram_length=ngram_length, engine=engine)
        text, warnings = client.compute(task_graph).result()
    _print_warnings(warnings)
    if task.argument and not text:
        raise EntryNotFoundError("no file of these archives contains this", path=display_path(name))
    print_report(FixedReport(text), task, output)


def search_on_cluster(
    scheduler: str, archives: Sequence[str], query: SearchQuery, *, engine: str, num_threads: int
) -> Iterator[SearchOutput]:
    """Yields what a search prints for each archive, in their order. Raises GompfsError."""
    with _connected(scheduler) as client:
        from gompfs.integrations.dask import grep_outputs

        futures = client.compute(grep_outputs(archives, query, engine=engine, num_threads=num_threads))
        for future in futures:
            found = future.result()
            future.release()
            _print_warnings(found.warnings)
            yield found


def _print_warnings(warnings: Sequence[str]) -> None:
    for warning in warnings:
        print_error(f"warning: {warning}")


@contextmanager
def _connected(scheduler: str) -> Iterator[Client]:
    """Connects to a scheduler. Errors of Dask in the body become GompfsErrors."""
    if not scheduler:  # Dask would start a cluster
        raise OptionError(f"{DASK} needs the address of a scheduler")
    try:
        from distributed import Client
        from distributed.comm import resolve_address
    except ImportError:
        raise OptionError(f"{DASK} needs Dask: {pip_install('dask')}") from None
    try:
        resolve_address(scheduler)  # after an unknown scheme, the threads of a Client do not end
        client = Client(scheduler, set_as_default=False)
    except (OSError, ValueError) as error:
        raise GompfsError(f"no Dask scheduler answers at {scheduler}: {error}") from None
    with client:
        try:
            yield client
        except (GompfsError, MemoryError, BrokenPipeError):
            raise
        except Exception as error:  # of a worker that was lost or lacks a package, for example
            raise GompfsError(f"the cluster failed: {type(error).__name__}: {error}") from error


def archives_and_name(archive: str, name: str, others: Sequence[str], no_name: str) -> tuple[list[str], str]:
    """Returns what the arguments ARCHIVE... NAME are. `no_name` is the default of NAME. Raises OptionError."""
    arguments = [archive, name, *others]
    if arguments[-1] == no_name:
        raise OptionError(f"{DASK} needs a statistic after the archives")
    return arguments[:-1], arguments[-1]
