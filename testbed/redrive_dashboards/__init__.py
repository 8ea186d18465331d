"""The Grafana dashboards of the chart, written down in short and built into `charts/redrive/dashboards/*.json`.

Grafana's JSON is long and repeats itself: a colour or a unit that should be the same everywhere is not, after the third
edit by hand. Here a panel is its question, its unit and what to do about it. The JSON is committed, since Helm reads
only files of the chart; a test holds it to what is built.
"""
