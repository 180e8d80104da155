"""Typical small mistakes in a Python file, as changes of its syntax tree."""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Mutation", "mutations_of"]

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}

OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}

Path = tuple[tuple[str, int | None], ...]
"""From the module to a node: names of fields, and places in those that are lists."""


@dataclass(frozen=True)
class Mutation:
    """One change: its lines and those of its function, what it says, and the node that replaces another."""

    lines: tuple[int, int]
    where: str
    function: tuple[int, int] | None
    what: str
    path: Path
    node: ast.AST

    def apply(self, source: str) -> ast.AST:
        """Return the tree of the source with the change in it."""
        tree: ast.AST = ast.parse(source)
        owner = tree
        for field, place in self.path[:-1]:
            owner = getattr(owner, field) if place is None else getattr(owner, field)[place]
        field, place = self.path[-1]
        if place is None:
            setattr(owner, field, self.node)
        else:
            getattr(owner, field)[place] = self.node
        return ast.fix_missing_locations(tree)


def mutations_of(source: str) -> list[Mutation]:
    """Return every change that there is to make, in the order of the source.

    >>> [change.what for change in mutations_of("y = x + 1 if x < 2 else x")][1:4]
    ['x < 2 -> x <= 2', '2 -> 3', 'x + 1 -> x - 1']
    """
    return list(_walk(ast.parse(source), (), "module", None))


def _walk(node: ast.AST, path: Path, where: str, function: tuple[int, int] | None) -> Iterator[Mutation]:
    lines = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    if isinstance(node, ast.If):
        lines = lines[0], node.test.end_lineno or lines[0]
    for changed in _changes(node):
        yield Mutation(lines, where, function, f"{_text(node)} -> {_text(changed)}", path, changed)
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        where = node.name if where == "module" else f"{where}.{node.name}"
    if _is_minus_one(node):
        return
    for field, value in ast.iter_fields(node):
        if _untouched(node, field):
            continue
        # Defaults and other parts outside the body are computed where a function is defined.
        inside = lines if field == "body" and isinstance(node, ast.FunctionDef | ast.Lambda) else function
        if isinstance(value, ast.AST):
            yield from _walk(value, (*path, (field, None)), where, inside)
        elif isinstance(value, list):
            for place, part in enumerate(value):
                if isinstance(part, ast.AST) and not _is_text(part):
                    yield from _walk(part, (*path, (field, place)), where, inside)


def _untouched(node: ast.AST, field: str) -> bool:
    """Return whether a field holds types, decorations, messages or names for export, which do not compute."""
    if field in ("annotation", "returns", "decorator_list", "bases", "type_params", "names"):
        return True
    if isinstance(node, ast.Raise | ast.ImportFrom | ast.Import | ast.JoinedStr):
        return True
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id == "__all__"
    if isinstance(node, ast.AnnAssign) and "TypeAlias" in ast.unparse(node.annotation):
        return True
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _is_minus_one(node: ast.AST) -> bool:
    """Return whether a number is -1: -2 would mean the same as a last axis of unknown length."""
    return isinstance(node, ast.UnaryOp) and ast.unparse(node) == "-1"


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    changed: ast.AST = copy.deepcopy(node)
    match changed:
        case ast.Compare(ops=ops):
            for place, kind in enumerate(ops):
                one = copy.deepcopy(changed)
                one.ops[place] = COMPARISONS[type(kind)]()
                yield one
        case ast.BinOp(op=kind) | ast.AugAssign(op=kind) if type(kind) in OPERATORS:
            changed.op = OPERATORS[type(kind)]()
            yield changed
        case ast.BoolOp(op=kind):
            changed.op = ast.Or() if isinstance(kind, ast.And) else ast.And()
            yield changed
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield operand
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield ast.Constant(value + 1)
        case ast.Constant(value=float() as value):
            yield ast.Constant(2 * value if value else 1.0)
        case ast.Return(value=ast.AST()):
            if not (isinstance(changed.value, ast.Constant) and changed.value.value is None):
                yield ast.Return(ast.Constant(None))
        case ast.If(test=test) | ast.IfExp(test=test) if "TYPE_CHECKING" not in ast.unparse(test):
            changed.test = ast.UnaryOp(ast.Not(), test)
            yield changed
        case ast.Raise() | ast.Continue() | ast.Break():
            yield ast.Pass()
        case ast.Expr(value=ast.Call()):
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
    if isinstance(node, ast.AugAssign):
        yield ast.Pass()


def _text(node: ast.AST) -> str:
    text = " ".join(ast.unparse(ast.fix_missing_locations(copy.deepcopy(node))).split())
    return text if len(text) <= 70 else f"{text[:67]}..."
