"""The API server in memory, as far as Redrives go: versions, merge patches, conflicts. A write may be the last."""

from copy import deepcopy

from redrive_operator.errors import KubeConflict


class Cluster:
    """Some Redrives. Each step of a write is one of the world's, at which it may end."""

    def __init__(self, world):
        self._world = world
        self.bodies = {}
        self.version = 100
        self.fails = None
        self.writes = 0

    def put(self, body):
        self.version += 1
        body = deepcopy(body)
        body["metadata"]["resourceVersion"] = str(self.version)
        self.bodies[body["metadata"]["name"]] = body
        return body

    def edit(self, name, **spec):
        body = self.bodies[name]
        body["metadata"]["generation"] += 1
        return self.put({**body, "spec": {**body["spec"], **spec}})

    def get(self, _kind, key):
        return deepcopy(self.bodies.get(key.name))

    def patch_status(self, _kind, key, status, *, version=None):
        self._world.tick()
        if self.fails is not None:
            raise self.fails
        body = self.bodies.get(key.name)
        if body is None:
            return None
        if version is not None and version != body["metadata"]["resourceVersion"]:
            raise KubeConflict("somebody else changed it")
        self.writes += 1
        body = self.put({**body, "status": merge(body.get("status", {}), status)})
        self._world.tick()
        return deepcopy(body)

    def status(self, name="fix"):
        return self.bodies[name].get("status", {})

    def condition(self, type_="Complete", name="fix"):
        found = next((one for one in self.status(name).get("conditions", []) if one["type"] == type_), {})
        return found.get("status"), found.get("reason")

    def message(self, type_="Complete", name="fix"):
        return next(one["message"] for one in self.status(name)["conditions"] if one["type"] == type_)


def merge(old, patch):
    merged = dict(old)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            merged[name] = merge(merged.get(name) or {}, value)
        else:
            merged[name] = value
    return merged
