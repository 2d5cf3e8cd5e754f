"""The base of the parts of a device array's class: it is generic in the type of its elements, as NumPy's is.

Type checkers see `DeviceNDArray[np.float32]`; without an index it is one of anything. When a program runs, an index
makes an alias, as it does of NumPy's.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Generic

    import numpy as np
    from typing_extensions import TypeVar

    from weft._weft import DeviceArrayBase
    from weft.cuda._memory.device_array import DeviceNDArray

    Element = TypeVar("Element", bound=np.generic, default=Any, covariant=True)

    class Array(DeviceArrayBase, Generic[Element]):
        """The methods of the array's own class that the parts need."""

        stream: Any

        @property
        def dtype(self) -> np.dtype[Element]: ...
        def _view(
            self, address: int, shape: Sequence[int], strides: Sequence[int], dtype: Any = None
        ) -> DeviceNDArray[Any]: ...
        def bind(self, stream: Any = 0) -> DeviceNDArray[Element]: ...
        def copy_to_host(self, ary: Any = None, stream: Any = 0) -> Any: ...
        def getitem(self, item: Any, stream: Any = 0) -> Any: ...
        def __getitem__(self, key: Any) -> Any: ...
        def item(self, *args: Any) -> Any: ...
else:
    Element = None

    class Array:
        """Can be given an index, as the class of a list can."""

        __class_getitem__ = classmethod(type(list[int]))
