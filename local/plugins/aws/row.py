"""What a row of the table can say about a resource type."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from local.plugins.aws.lifecycle import Run

Described = Mapping[str, Any]
"""What AWS says about a resource: the part of a describe response that is the resource itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prop:
    """How one input property behaves and what it is called in AWS."""

    param: str | None = None
    """Dotted parameter of the create call; None finds it by name in botocore's shape; "" keeps it out of that call."""
    read: str | Callable[[Described, Any], Any] | None = None
    """JMESPath in what AWS describes, or a function of that and of the declared value; None finds it by name; "" means that
    AWS never tells, so the input is kept."""
    send: Callable[[Any], Any] | None = None
    """Turns the value into the form that AWS wants, where names and types are not all that differs."""
    replace: bool = False
    """A change needs a new resource."""
    replace_below: tuple[str, ...] = ()
    """Nested fields (dotted, below this property) of which a change needs a new resource."""
    computed: bool = False
    """AWS chooses a value where none is given, so its absence is no wish to clear it."""
    told: bool = False
    """AWS tells it whenever it is set, so its silence means that it is not, computed or not."""
    default: Any = None
    """Filled in where the program says nothing."""
    json: bool = False
    """A JSON document, as text or as an object; compared by meaning."""
    ordered: bool = False
    """A list whose order matters; other lists are compared as sets."""
    spell: Callable[[str], str] | None = None
    """One spelling of a text for comparisons, where AWS answers in another one than it takes."""
    computed_below: tuple[str, ...] = ()
    """Nested fields (dotted, without list indexes) that AWS fills in; with `computed` all of them are."""
    write_only: bool = False
    """Steers a call of ours and is no property of the resource in AWS."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Nested fields whose AWS name differs: dotted Pulumi path below this property -> AWS name of the last step."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One AWS operation."""

    op: str
    """botocore's operation name."""
    by: Mapping[str, Any] = field(default_factory=dict)
    """Constant parameters; a text "$name" is replaced by the state's property of that name ("$id" is the identifier)."""
    takes: tuple[str, ...] | None = None
    """Properties sent. Create: None is all that the row has. Update: this call handles a change of any of these."""
    inside: str = ""
    """Parameter that holds the properties which the operation's top level has not."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Property -> dotted parameter of this operation, where it differs from the creating one's."""
    result: str = "@"
    """JMESPath of the resource in the response."""
    token: str = ""
    """Parameter that takes a client token, so that a creation repeated after a kill adopts what the first one made."""
    each: bool = False
    """Update: the operation takes one property at a time."""
    all: bool = False
    """Update: send every property in `takes` that has a value, not only the changed ones."""
    whole: bool = False
    """Update: the operation sets everything anew, so what it is not told is cleared."""


Step = Call | Callable[["Run"], Any]
"""A call, or a function that makes calls where a table can't say it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Update:
    """A function that handles a change of any of `takes`; for what one `Call` can't do."""

    takes: tuple[str, ...]
    run: Callable[["Run"], Any]
    on_create: bool = False
    """Also run after creation, if any of `takes` is set to something else than its default."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wait:
    """A condition on the described resource that ends creation, update or deletion."""

    at: str
    """JMESPath in what AWS describes."""
    done: tuple[Any, ...]
    failed: tuple[Any, ...] = ()
    seconds: float = 300.0
    reason: str = ""
    """JMESPath of AWS's own explanation of a failure."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tags:
    """How a service takes and gives tags."""

    create: str = "Tags"
    """Parameter of the create call; "" where creation takes none, so that they are added afterwards."""
    spec: str = ""
    """EC2's resource type for a TagSpecifications parameter."""
    form: str = "Key/Value"
    """"map", or the field names of a list's items."""
    add: Call | None = None
    """Operation that adds tags, in parameter `add_as`."""
    add_as: str = "Tags"
    remove: Call | None = None
    """Operation that removes the keys in parameter `remove_as`."""
    remove_as: str = "TagKeys"
    put: Callable[["Run", Mapping[str, str]], None] | None = None
    """Sets all tags at once, for a service without adding and removing."""
    read: Step | None = None
    """Step that lists them, where describing the resource does not."""
    at: str = "Tags"
    """JMESPath of the tags in what AWS describes, or in `read`'s result."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Name:
    """A property that gets a name made from the resource's where the program gives none."""

    prop: str = "name"
    longest: int = 255
    lower: bool = False
    before: str = ""
    """Fixed beginning that AWS demands."""
    prefix_prop: str = "namePrefix"


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One resource type."""

    token: str
    service: str
    """boto3's client name."""
    props: Mapping[str, Prop]
    create: Step
    read: Step
    delete: Step | None
    """None: the resource has no deletion in AWS (a setting of another resource that stays)."""
    id: str | Callable[["Run"], str]
    """JMESPath in what creation returns, a template of properties such as "{clusterName}:{addonName}", or a function."""
    form: Call | None = None
    """Where `create` is a function: the call whose parameters the properties fill."""
    id_parts: str = ""
    """Template that an identifier given to import follows, where that is not the template in `id`."""
    updates: Sequence[Call | Update] = ()
    outputs: Mapping[str, str | Callable[["Run", Described], Any]] = field(default_factory=dict)
    """Computed property -> JMESPath, template with {id}, {region}, {account}, {partition} and properties, or function."""
    tags: Tags | None = None
    name: Name | None = None
    created: Wait | None = None
    updated: Wait | None = None
    deleted: Wait | None = None
    """Without it a deletion with a wait ends once the resource can't be described any more."""
    retry_delete: tuple[str, ...] = ()
    """Error codes of a deletion that pass once dependants are gone."""
    retry_create: tuple[str, ...] = ()
    """Error codes of a creation that pass once what it refers to has settled."""
    gone: tuple[str, ...] = ()
    """Error codes that mean "does not exist", beyond those which say it by name."""
    delete_before_replace: bool = False
    """There can be only one of it: the old one has to go first."""
    volatile: tuple[str, ...] = ()
    """Outputs that any update changes."""
    validate: Callable[[Mapping[str, Any]], Mapping[str, str]] | None = None
    """Combinations refused at preview: property path -> message."""


def creating_call(row: Row) -> Call | None:
    """The call whose parameters the properties fill, if there is a single one."""
    return row.create if isinstance(row.create, Call) else row.form


def fixed(*names: str, **options: Any) -> dict[str, Prop]:
    """Plain properties of which any change replaces the resource."""
    return dict.fromkeys(names, Prop(replace=True, **options))


def plain(*names: str, **options: Any) -> dict[str, Prop]:
    """Plain properties that can be changed in place."""
    return dict.fromkeys(names, Prop(**options))
