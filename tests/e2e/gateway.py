"""A pod that leads to a broker outside of the cluster: a Service with a selector, and a real pod behind it."""

import json

FORWARD = """
import asyncio, json, sys

async def carry(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()

def leading_to(host, port):
    async def serve(reader, writer):
        far_reader, far_writer = await asyncio.open_connection(host, port)
        await asyncio.gather(carry(reader, far_writer), carry(far_reader, writer))
    return serve

async def main():
    for port, (host, far) in json.loads(sys.argv[1]).items():
        await asyncio.start_server(leading_to(host, far), "0.0.0.0", int(port))
    await asyncio.Event().wait()

asyncio.run(main())
"""


def manifests(name, pod, ways):
    """Make the pod, and the Service of the same name: `ways` are its ports, and where each leads."""
    words = ["python", "-c", FORWARD, json.dumps({port: list(way) for port, way in ways.items()})]
    probe = {"tcpSocket": {"port": min(ways)}, "periodSeconds": 1}
    # By its name, so that whoever forwards must have read the Service's target.
    ports = [{"name": f"p{port}", "containerPort": port} for port in ways]
    body = pod(name, command=words, labels={"app": name}, container={"readinessProbe": probe, "ports": ports})
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {
            "selector": {"app": name},
            "ports": [{"name": f"s{port}", "port": port, "targetPort": f"p{port}"} for port in ways],
        },
    }
    return [body, service]
