"""Pickles of moto's backends. Moto's objects are plain Python, but for locks, keys of cryptography, lambdas and the bodies of S3 objects.

Everything special is told by type alone (a dispatch table), so that the pickler calls back into Python for those few objects only.
"""

import copyreg
import functools
import hashlib
import importlib
import marshal
import pickle
import threading
import types
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from moto.core.base_backend import AccountSpecificBackend, BackendDict
from moto.s3.models import FakeKey

# An S3 object's body above this is a file of its own, so that it isn't written again with every later request.
INLINE_BODY_BYTES = 64 * 1024


class BackendPickler:
    """Writes a graph of backends; bodies of large S3 objects go to files in `bodies`, named by their content."""

    def __init__(self, file: IO[bytes], bodies: Path) -> None:
        self._bodies = bodies
        self.bodies_in_use: set[str] = set()
        self._pickler = pickle.Pickler(file, protocol=5)
        self._pickler.dispatch_table = copyreg.dispatch_table | self._reducers()

    def dump(self, graph: Any) -> None:
        """Write `graph`. Raises pickle's errors, and what an object's own reduction raises."""
        self._pickler.dump(graph)

    def _reducers(self) -> dict[type, Any]:
        reducers: dict[type, Any] = {
            type(threading.Lock()): lambda lock: (threading.Lock, ()),
            type(threading.RLock()): lambda lock: (threading.RLock, ()),
            defaultdict: _reduce_defaultdict,
            FakeKey: self._reduce_s3_object,
            # moto's tables of backends are found again by the module that holds them, not copied.
            **{kind: lambda table: (backend_table, (table_name(table),)) for kind in _family(BackendDict)},
            AccountSpecificBackend: _refuse_account_table,
        }
        reducers |= dict.fromkeys(_family(defaultdict), _reduce_defaultdict)
        return reducers | _key_reducers()

    def _reduce_s3_object(self, key: FakeKey) -> Any:
        if key.contentsize <= INLINE_BODY_BYTES:
            return key.__reduce_ex__(4)
        state = {name: value for name, value in vars(key).items() if name not in ("_value_buffer", "lock", "trainyard_body")}
        return restore_s3_object, (self._write_body(key), str(self._bodies), state)

    def _write_body(self, key: Any) -> str:
        known = getattr(key, "trainyard_body", None)
        if known is None or known[1] != key.contentsize:
            body = key.value
            known = (hashlib.sha256(body).hexdigest(), key.contentsize)
            target = self._bodies / known[0]
            if not target.exists():
                self._bodies.mkdir(parents=True, exist_ok=True)
                partial = target.with_suffix(".partial")
                partial.write_bytes(body)
                partial.rename(target)
            key.trainyard_body = known
        self.bodies_in_use.add(known[0])
        return known[0]


def _family(kind: type) -> Iterator[type]:
    """A class and all classes made from it so far."""
    yield kind
    for child in kind.__subclasses__():
        yield from _family(child)


def _refuse_account_table(table: AccountSpecificBackend) -> Any:
    raise pickle.PicklingError(f"an object of moto refers to the table of {table.service_name} backends of account {table.account_id}")


def table_name(table: BackendDict) -> str:
    """`module:attribute` of a table of backends: the same in every process."""
    module = importlib.import_module(table.backend.__module__)
    for name, value in vars(module).items():
        if value is table:
            return f"{module.__name__}:{name}"
    raise pickle.PicklingError(f"no module-level name for the backends of {table.backend.__name__}")


def backend_table(name: str) -> BackendDict:
    """The table that `table_name` named."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _reduce_defaultdict(table: defaultdict) -> Any:
    factory: Any = table.default_factory
    if isinstance(factory, types.FunctionType) and "<locals>" in factory.__qualname__:
        factory = _Lambda.of(factory)
    return restore_defaultdict, (type(table), factory), vars(table) if hasattr(table, "__dict__") else None, None, iter(table.items())


def restore_defaultdict(kind: type[defaultdict], factory: Any) -> defaultdict:
    """An empty dictionary of `kind`, whatever the constructor of a subclass asks."""
    table = kind.__new__(kind)
    table.default_factory = factory.function() if isinstance(factory, _Lambda) else factory
    return table


class _Lambda:
    """A lambda (moto uses them as factories of default values): its byte code and the values it closed over."""

    def __init__(self, code: bytes, module: str, defaults: tuple[Any, ...] | None, cells: tuple[Any, ...]) -> None:
        self.code, self.module, self.defaults, self.cells = code, module, defaults, cells

    @classmethod
    def of(cls, function: types.FunctionType) -> "_Lambda":
        cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
        return cls(marshal.dumps(function.__code__), function.__module__, function.__defaults__, cells)

    def function(self) -> types.FunctionType:
        namespace = vars(importlib.import_module(self.module))
        cells = tuple(types.CellType(value) for value in self.cells)
        restored = types.FunctionType(marshal.loads(self.code), namespace, "<lambda>", self.defaults, cells)
        restored.__qualname__ = "<locals>.<lambda>"
        return restored


@functools.cache
def _key_reducers() -> dict[type, Any]:
    """Private keys of KMS and of certificates: cryptography's classes are opaque, their PEM text is not."""
    samples = (rsa.generate_private_key(public_exponent=65537, key_size=2048), ec.generate_private_key(ec.SECP256R1()))
    return {type(sample): _reduce_private_key for sample in samples}


def _reduce_private_key(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> Any:
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return restore_private_key, (pem,)


def restore_private_key(pem: bytes) -> Any:
    """A key from its PEM text."""
    return serialization.load_pem_private_key(pem, password=None)


def restore_s3_object(body: str, bodies: str, state: dict[str, Any]) -> Any:
    """An S3 object whose body is in a file."""
    key: Any = FakeKey.__new__(FakeKey)
    key.__setstate__(state | {"value": (Path(bodies) / body).read_bytes()})
    return key
