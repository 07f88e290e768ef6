"""Ray actors: one per worker, each owns a block of points."""

from __future__ import annotations

from typing import Any

from burnish.taskbench.graph import Graph
from burnish.taskbench.systems.ray import Ray


class _Owner:
    def produce(self, body: Any, t: int, p: int, *inputs: Any) -> Any:
        return body.produce(t, p, *inputs)


class RayActors(Ray):
    """One actor per worker owns a block of points."""

    name = "ray_actors"

    def _prepare(self) -> None:
        owner = self._ray.remote(num_cpus=1)(_Owner)
        self._actors = [owner.remote() for _ in range(self.workers)]

    def call(self, body: Any, graph: Graph, t: int, p: int, inputs: list[Any]) -> Any:
        return self._actors[p * self.workers // graph.width].produce.remote(body, t, p, *inputs)
