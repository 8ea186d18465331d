"""A broker of either release is reached from pods by a Service name, with the keys of a Secret."""

GREET = """
import os, pika
who = pika.PlainCredentials(os.environ["USERNAME"], os.environ["PASSWORD"])
# A Service is known to a node a moment after it was made.
patient = {"connection_attempts": 30, "retry_delay": 1}
connection = pika.BlockingConnection(pika.ConnectionParameters(os.environ["HOST"], credentials=who, **patient))
channel = connection.channel()
queue = channel.queue_declare("", exclusive=True).method.queue
channel.confirm_delivery()
channel.basic_publish("", queue, b"hello")
print(channel.basic_get(queue, auto_ack=True)[2].decode())
connection.close()
"""


def from_secret(key):
    return {"name": key.upper(), "valueFrom": {"secretKeyRef": {"name": "rabbitmq", "key": key}}}


def test_pod_publishes_and_consumes_through_the_service_name(namespace, pod, broker):
    environment = {"env": [from_secret(key) for key in ("host", "username", "password")]}
    namespace.apply(pod("greeter", command=["python3", "-c", GREET], container=environment, restartPolicy="Never"))
    namespace.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/greeter", "--timeout=120s")
    assert namespace.kubectl("logs", "greeter").strip() == "hello"
