"""The iterator over one epoch.

**Invariants**
- After SampleError the same iterator goes on; once a later ``iter()`` has begun, the loader was
  closed or the process forked, it raises ClosedError.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .errors import ClosedError
from .session import Session

if TYPE_CHECKING:
    from .loader import Loader


class BatchIterator:
    """One epoch's batches. Keeps its loader alive."""

    def __init__(self, loader: Loader, session: Session, serial: int) -> None:
        """Made by ``iter(loader)``."""
        self._loader = loader
        self._session = session
        self._serial = serial
        self.epoch = loader._epoch
        self._finished = False

    def __iter__(self) -> BatchIterator:
        """Itself."""
        return self

    def __next__(self) -> Any:
        """The next batch.

        Raises:
            SampleError: a sample of the batch failed; calling again goes on.
            ClosedError: the loader was closed, iterated anew, or the process forked.
        """
        if self._finished:
            raise StopIteration
        if self._session.pid != os.getpid():
            raise ClosedError("the process was forked during the epoch; call iter(loader) again")
        if self._loader._serial != self._serial:
            raise ClosedError(
                "a later iter(loader) or load_state_dict has taken over; call iter(loader) again"
            )
        try:
            return self._session.next_batch()
        except StopIteration:
            self._finished = True
            raise

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self._loader)
