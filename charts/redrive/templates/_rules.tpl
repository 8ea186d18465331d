{{- /*
What the operator may do, verb by verb, written by hand. Missing on purpose: Secrets are never listed or watched, so it
reads only what an object names; nothing is updated as a whole, since it applies its own fields alone; and it may change
no namespace, role or kind. Of pods it writes one annotation: the chart's admission policy holds it to that.

Plain YAML, so that tests can read it without Helm.
*/}}

{{- /* In every namespace that it serves. */}}
{{- define "redrive.rules" -}}
- apiGroups: [redrive.dev]
  resources: [retryingconsumers]
  verbs: [get, list, watch, patch]
- apiGroups: [redrive.dev]
  resources: [retryingconsumers/status]
  verbs: [patch]
- apiGroups: [redrive.dev]
  resources: [redrives]
  verbs: [get, list, watch]
- apiGroups: [redrive.dev]
  resources: [redrives/status]
  verbs: [patch]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create, patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, patch]
- apiGroups: [""]
  resources: [events]
  verbs: [get, list, create, patch]
{{- end }}

{{- /* Where it serves the whole cluster, also these. The uid of kube-system is what brokers know a cluster by. */}}
{{- define "redrive.clusterRules" -}}
- apiGroups: [redrive.dev]
  resources: [brokerconnections]
  verbs: [get, list, watch, patch]
- apiGroups: [redrive.dev]
  resources: [brokerconnections/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [kube-system]
  verbs: [get]
{{- end }}
