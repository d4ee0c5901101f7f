"""From the author's tree to the machine's plan.

The construction is Flink's (``org.apache.flink.cep.nfa.compiler.NFACompiler``): the pattern is
walked from its end to its start, each step becoming states in front of the *sink* it leads to. It
differs on purpose in one thing: a step's ``gap`` stands on every edge that takes a repetition.

Terms: *sink* is where a completed step leads, *proceed target* where a step that may be left out
leads. A *loop head* is the first repetition of a group, which obeys the group's own contiguity;
later repetitions obey its ``loop``.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_cep.compiler.formula import TRUE, Formula, conjunction, negate
from spark_cep.compiler.plan import Action, GapAtom, Plan, StateKind
from spark_cep.compiler.steps.assembly import assemble
from spark_cep.compiler.steps.conditions import AtomTable
from spark_cep.compiler.steps.nodes import Node
from spark_cep.pattern.tree import Contiguity, Loop, Rule, Step, Times

_INNER = {
    Loop.RELAXED: Contiguity.FOLLOWED_BY,
    Loop.CONSECUTIVE: Contiguity.NEXT,
    Loop.COMBINATIONS: Contiguity.FOLLOWED_BY_ANY,
}


def lower(rule: Rule) -> Plan:
    """Compile ``rule``, which must have passed validation."""
    return _Lowering(rule).plan()


@dataclass(frozen=True, slots=True)
class _Place:
    """A step with its surroundings: its scope (the pattern or a group) and position in it."""

    scope: tuple[Step, ...]
    position: int
    group: Step | None
    loop_head: bool
    outer_following: Step | None

    @property
    def step(self) -> Step:
        return self.scope[self.position]

    @property
    def following(self) -> Step | None:
        if self.position + 1 < len(self.scope):
            return self.scope[self.position + 1]
        return self.outer_following

    @property
    def heads_group(self) -> bool:
        return self.group is not None and self.position == 0


class _Lowering:
    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._atoms = AtomTable(rule)
        self._stops: dict[str, Node] = {}
        self._before_greedy: dict[Node, Node] = {}
        self._final = Node("", StateKind.FINAL)

    def plan(self) -> Plan:
        start = self._scope(self._rule.pattern, self._final, None, True, None)
        start.kind = StateKind.START
        return assemble(self._rule, start, self._atoms)

    # One scope: the whole pattern, or one repetition of a group.

    def _scope(
        self,
        scope: tuple[Step, ...],
        sink: Node,
        group: Step | None,
        loop_head: bool,
        outer_following: Step | None,
    ) -> Node:
        for position in range(len(scope) - 1, -1, -1):
            place = _Place(scope, position, group, loop_head, outer_following)
            after = place.step.after if position else None
            if after is Contiguity.NOT_FOLLOWED_BY:
                if sink.kind is StateKind.FINAL and self._has_deadline:
                    sink = self._pending_not(place)
            elif after is Contiguity.NOT_NEXT:
                sink = self._not_next(place, sink)
            else:
                sink = self._positive(place, sink)
        return sink

    @property
    def _has_deadline(self) -> bool:
        return self._rule.within.max_ms is not None or self._rule.within.gap_ms is not None

    def _pending_not(self, place: _Place) -> Node:
        condition = self._take(place, place.step)
        node = Node(place.step.name, StateKind.PENDING)
        node.add(Action.PROCEED, self._stop(place.step), condition)
        node.add(Action.IGNORE, node, negate(condition))
        return node

    def _not_next(self, place: _Place, sink: Node) -> Node:
        condition = self._take(place, place.step)
        node = Node(place.step.name, StateKind.NORMAL)
        # At the end the next event of the key decides, so it is used up.
        action = Action.IGNORE if sink.kind is StateKind.FINAL else Action.PROCEED
        node.add(action, sink, negate(condition))
        node.add(Action.PROCEED, self._stop(place.step), condition)
        return node

    def _positive(self, place: _Place, sink: Node) -> Node:
        step = place.step
        if step.times is None:
            node = self._once(place, sink, sink, self._take(place, step))
        elif step.times.looping:
            loop = self._endless(place, self._without_earlier_nots(place, sink))
            node = self._repeated(place, loop, sink, Times(step.times.minimum, step.times.minimum))
        else:
            node = self._repeated(place, sink, sink, step.times)
        self._add_stops(place, node)
        return node

    def _once(self, place: _Place, sink: Node, proceed: Node, take: Formula) -> Node:
        """A single step, or the first repetition of one that repeats."""
        ignore = self._outer_ignore(place)
        return self._single(place, sink, proceed, take, ignore, place.step.optional, True)

    def _repeated(self, place: _Place, sink: Node, proceed: Node, times: Times) -> Node:
        """``times.minimum`` mandatory repetitions and, behind them, the optional ones."""
        step = place.step
        assert times.maximum is not None
        inner_take = self._repetition_take(place)
        inner_ignore = self._inner_ignore(place)
        if step.greedy and times.minimum != times.maximum:
            self._narrow_for_greedy(sink, inner_take)
        node = sink
        for _ in range(times.minimum, times.maximum):
            node = self._single(place, node, proceed, inner_take, inner_ignore, True, False)
            self._add_following_stop(place, node)
        for _ in range(times.minimum - 1):
            node = self._single(place, node, None, inner_take, inner_ignore, False, False)
            self._add_following_stop(place, node)
        return self._once(place, node, proceed, self._unless_ended(step, self._take(place, step)))

    def _endless(self, place: _Place, sink: Node) -> Node:
        """The state of a loop that may go on for ever, behind its mandatory repetitions."""
        step = place.step
        if step.group is not None:
            return self._endless_group(place, sink)
        true = self._true(place)
        take = self._repetition_take(place)
        loop = Node(step.name, StateKind.NORMAL)
        if step.greedy:
            until = self._atoms.until(step) if step.until else None
            if until is not None:
                untouched = self._copy(sink)
                self._before_greedy[sink] = untouched
                loop.add(Action.PROCEED, untouched, conjunction((true, until)))
                loop.add(Action.PROCEED, sink, conjunction((true, negate(until))))
            else:
                loop.add(Action.PROCEED, sink, true)
            self._narrow_for_greedy(sink, self._with_gap(step, self._take(place, step)))
        else:
            loop.add(Action.PROCEED, sink, true)
        loop.add(Action.TAKE, loop, take)
        self._add_following_stop(place, loop)
        ignore = self._inner_ignore(place)
        if ignore is not None:
            waiting = Node(step.name, StateKind.NORMAL)
            waiting.add(Action.TAKE, loop, take)
            waiting.add(Action.IGNORE, waiting, ignore)
            loop.add(Action.IGNORE, waiting, ignore)
            self._add_following_stop(place, waiting)
        return loop

    def _endless_group(self, place: _Place, sink: Node) -> Node:
        step = place.step
        assert step.group is not None
        again = Node(step.name, StateKind.NORMAL)
        first = self._scope(step.group, again, step, False, place.following)
        first.add(Action.PROCEED, sink, self._true(place))
        again.add(Action.PROCEED, first, self._true(place))
        return first

    def _single(
        self,
        place: _Place,
        sink: Node,
        proceed: Node | None,
        take: Formula,
        ignore: Formula | None,
        optional: bool,
        loop_head: bool,
    ) -> Node:
        """One repetition in front of ``sink``; if ``optional`` it may be left for ``proceed``."""
        step = place.step
        true = self._true(place)
        if step.group is not None:
            node = self._scope(step.group, sink, step, loop_head, place.following)
            if optional and proceed is not None:
                node.add(Action.PROCEED, proceed, true)
            return node
        node = Node(step.name, StateKind.NORMAL)
        sink = self._without_earlier_nots(place, sink)
        node.add(Action.TAKE, sink, take)
        if optional and proceed is not None:
            if step.greedy and step.until is not None:
                until = self._atoms.until(step)
                untouched = self._before_greedy.get(proceed, proceed)
                node.add(Action.PROCEED, untouched, conjunction((true, until)))
                node.add(Action.PROCEED, proceed, conjunction((true, negate(until))))
            else:
                node.add(Action.PROCEED, proceed, true)
        if ignore is not None:
            waiting = node
            if optional or self._heads_optional_group(place):
                # Having let an event pass, the step can no longer be left out.
                waiting = Node(step.name, StateKind.NORMAL)
                waiting.add(Action.TAKE, sink, take)
                waiting.add(Action.IGNORE, waiting, ignore)
                self._add_stops(place, waiting)
            node.add(Action.IGNORE, waiting, ignore)
        return node

    def _heads_optional_group(self, place: _Place) -> bool:
        return (
            place.heads_group
            and place.loop_head
            and place.group is not None
            and place.group.optional
        )

    # Conditions.

    def _take(self, place: _Place, step: Step) -> Formula:
        return self._unless_group_ends(place, self._atoms.where(step))

    def _true(self, place: _Place) -> Formula:
        return self._unless_group_ends(place, TRUE)

    def _unless_group_ends(self, place: _Place, condition: Formula) -> Formula:
        if place.group is None:
            return condition
        return self._unless_ended(place.group, condition)

    def _unless_ended(self, step: Step, condition: Formula) -> Formula:
        """``condition``, but false for an event that ends the loop over ``step``."""
        if step.until is None:
            return condition
        return conjunction((negate(self._atoms.until(step)), condition))

    def _with_gap(self, step: Step, condition: Formula) -> Formula:
        if step.gap_ms is None:
            return condition
        return conjunction((condition, self._atoms.add(GapAtom(step.gap_ms, step.name))))

    def _repetition_take(self, place: _Place) -> Formula:
        step = place.step
        return self._unless_ended(step, self._with_gap(step, self._take(place, step)))

    def _outer_ignore(self, place: _Place) -> Formula | None:
        contiguity = place.step.after or Contiguity.NEXT
        if place.heads_group:
            assert place.group is not None
            contiguity = (
                place.group.after or Contiguity.NEXT
                if place.loop_head
                else _INNER[place.group.loop]
            )
        return self._ignore(place, contiguity, self._atoms.where(place.step))

    def _inner_ignore(self, place: _Place) -> Formula | None:
        step = place.step
        contiguity = _INNER[place.group.loop if place.heads_group and place.group else step.loop]
        where = self._with_gap(step, self._atoms.where(step))
        ignore = self._ignore(place, contiguity, where)
        return None if ignore is None else self._unless_ended(step, ignore)

    def _ignore(self, place: _Place, contiguity: Contiguity, where: Formula) -> Formula | None:
        if contiguity is Contiguity.NEXT:
            return None
        relaxed = contiguity is Contiguity.FOLLOWED_BY
        return self._unless_group_ends(place, negate(where) if relaxed else TRUE)

    # NOT steps become stops of the states around them.

    def _stop(self, step: Step) -> Node:
        return self._stops.setdefault(step.name, Node(step.name, StateKind.STOP))

    def _open_nots(self, place: _Place) -> list[Step]:
        """The NOT steps that still hold while ``place`` waits: those right before it, seen
        through optional steps."""
        nots = []
        for step in reversed(place.scope[: place.position]):
            if step.after is Contiguity.NOT_FOLLOWED_BY:
                nots.append(step)
            elif not step.optional:
                break
        # The first step of a scope ends the walk even when it is optional.
        return nots

    def _add_stops(self, place: _Place, node: Node) -> None:
        for step in self._open_nots(place):
            condition = self._take(place, step)
            node.add(Action.PROCEED, self._stop(step), condition)

    def _add_following_stop(self, place: _Place, node: Node) -> None:
        following = place.following
        if following is not None and following.after is Contiguity.NOT_FOLLOWED_BY:
            condition = self._take(place, following)
            node.add(Action.PROCEED, self._stop(following), condition)

    def _without_earlier_nots(self, place: _Place, sink: Node) -> Node:
        """The sink as seen once an optional step was taken: NOTs before that step are over."""
        nots = {step.name for step in self._open_nots(place)}
        if not nots or not place.step.optional:
            return sink
        return self._strip_stops(sink, nots, {})

    def _strip_stops(self, node: Node, nots: set[str], done: dict[Node, Node]) -> Node:
        if node in done:
            return done[node]
        stripped = done[node] = Node(node.step, node.kind)
        for edge in node.edges:
            target = edge.target
            if edge.action is not Action.PROCEED:
                target = stripped if target is node else target
            elif target.kind is StateKind.STOP and target.step in nots:
                continue
            else:
                target = self._strip_stops(target, nots, done)
            stripped.add(edge.action, target, edge.condition)
        return stripped

    def _copy(self, node: Node) -> Node:
        copied = Node(node.step, node.kind)
        for edge in node.edges:
            copied.add(edge.action, copied if edge.target is node else edge.target, edge.condition)
        return copied

    @staticmethod
    def _narrow_for_greedy(sink: Node, take: Formula) -> None:
        for edge in sink.edges:
            edge.condition = conjunction((edge.condition, negate(take)))
