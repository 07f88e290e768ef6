"""taskbench: what a task runtime costs, measured with one parameterized program.

``Graph`` and ``Kernel`` say what runs, ``burnish.taskbench.systems`` has what can run it, :func:`metg` and
:func:`compare` measure.
"""

from burnish.taskbench.bodies import execute_point
from burnish.taskbench.compare import Comparison, compare
from burnish.taskbench.errors import GraphError, Unsupported, ValidationError
from burnish.taskbench.graph import Counts, Graph
from burnish.taskbench.kernel import Kernel
from burnish.taskbench.metg import metg
from burnish.taskbench.records import Measurement, MetgResult
from burnish.taskbench.session import session
from burnish.taskbench.systems import SYSTEMS, Outputs, System

__all__ = [
    "SYSTEMS", "Comparison", "Counts", "Graph", "GraphError", "Kernel", "Measurement", "MetgResult", "Outputs", "System",
    "Unsupported", "ValidationError", "compare", "execute_point", "metg", "session",
]  # fmt: skip
