"""Graphs: launches that are recorded once and run again with one call."""

from __future__ import annotations

from weft._weft import GraphBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


class Graph(GraphBase):
    """Launches and copies that are recorded in a ``with`` block and run as often as wanted.

    In the block nothing runs: what this thread launches on the current device, and what it copies from one device array
    to another, is recorded. Kernels are compiled there. So are copies between a device array and a NumPy array that is
    there: ``array.copy_to_device(host)``, ``cuda.to_device(host, to=array)`` and ``array.copy_to_host(out)``. Each
    launch of the graph reads what is in ``host`` then, or writes ``out``, so leave them alone until the stream of the
    launch was waited for, and locked if `cuda.pinned` locks them. The elements must lie in the same order in both, in
    one piece or in rows of one distance (``ValueError``). Arrays of the host as arguments of kernels, copies into new
    arrays, and waiting cannot be recorded (``RuntimeError``, ``TypeError``). A block that raises has no effect.

    Work in one stream is done in order, and so is all work without streams. Work in different streams is done at
    once where it can be, but for what events order: ``event.record(stream)`` and ``event.wait(stream)`` in the block
    are of the recording alone, and the event must be recorded in the block that waits for it. The default stream comes
    after all work recorded before, and all streams wait for it.

    ``launch`` runs all of it. On a GPU the driver does so with one call (CUDA driver API, "Graph Management"; drivers
    before CUDA 12.0, and graphs with a cooperative launch, take one call a step). The CPU runs one launch after the
    other, as they were recorded. The graph keeps its arrays, of the host, too: each run reads what is in them then.
    Dropping a graph with copies of the host's waits for its last launch.

    Examples
    --------
    >>> with cuda.graph() as graph:  # doctest: +SKIP
    ...     blur[blocks, threads](image, scratch)
    ...     sharpen[blocks, threads](scratch, image)
    >>> for _ in range(100):  # doctest: +SKIP
    ...     graph.launch()
    """

    def __enter__(self) -> Self:
        """Record from now on.

        Raises
        ------
        RuntimeError
            This thread records a graph already.
        """
        self._begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Record no longer; what was recorded before in another block is replaced, unless this one has raised."""
        self._end(kind is not None)

    def __repr__(self) -> str:
        steps = len(self)
        return f"<weft.cuda.Graph of {steps} step{'' if steps == 1 else 's'}>"


def graph() -> Graph:
    """Make a graph that is empty: record launches in a ``with`` block of it.

    Returns
    -------
    Graph
        ``launch(stream=0)`` runs it, ``set_args(number, *args)`` gives a launch other arguments of the same types, and
        ``launches`` lists them.

    Examples
    --------
    >>> x = cuda.to_device(np.ones(3))
    >>> with cuda.graph() as graph:
    ...     scale[1, 32](x, 2.0)
    >>> graph.launch()
    >>> graph.launch()
    >>> print(x.copy_to_host())
    [4. 4. 4.]
    """
    return Graph()
