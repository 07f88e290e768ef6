"""The log in a Ray actor, also while the actor is killed."""

import os
import signal

import pytest

from burnish.runtime.lineage import DirectoryStore, LineageLog, LineageMissingError, read_log
from burnish.runtime.lineage.records import Kind, User

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ray():
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield ray
    ray.shutdown()


def user(i):
    return User(1, 2, i, bytes([i % 251]) * 20)


def test_log_in_an_actor_that_is_killed_now_and_then(ray, tmp_path):
    from burnish.runtime.lineage.ray_store import RayActorStore

    store = RayActorStore(tmp_path, name="lineage-test")
    pids = set()
    with LineageLog(store) as log:
        for i in range(1, 401):
            lsn = log.append(Kind.USER, user(i))
            if i % 20 == 0:
                log.flush(lsn)
            if i % 100 == 50:
                pid = store._call("pid")
                pids.add(pid)
                os.kill(pid, signal.SIGKILL)
        key = log.put_blob(b"blob" * 1000)
        assert log.get_blob(key) == b"blob" * 1000
        with pytest.raises(LineageMissingError, match="is not in the lineage store"):
            log.get_blob(bytes(16))
        assert [(e.lsn, e.record) for e in log.read()] == [(i, user(i)) for i in range(1, 401)]
        log.truncate(300)
        assert [e.lsn for e in log.read()][:1] == [300]
    assert len(pids) == 4
    assert [e.lsn for e in read_log(DirectoryStore(tmp_path))] == list(range(300, 402))
    with LineageLog(RayActorStore(tmp_path, name="lineage-test")) as log:
        assert log.append(Kind.USER, user(1)) == 402
