"""What runbooks tell a person to say to the broker is something that every release of it understands."""

from runbooks import calls

# What changes nothing is done; of the rest it is asked how it is done.
LOOKS = {"cluster_status", "list_permissions", "list_queues", "status"}


def test_broker_understands_what_the_pages_tell_people_to_say_to_it(broker):
    for command, *words in calls("rabbitmqctl"):
        if command in LOOKS:
            broker.rabbitmqctl(command, *words)  # raises if it fails; on an empty broker it may have nothing to say
        else:
            assert command in broker.rabbitmqctl("help", command)
    assert (broker.root / "usr/lib/rabbitmq/bin/rabbitmq-diagnostics").exists()
