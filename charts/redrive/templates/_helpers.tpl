{{- /* The name of every object: at most 55 characters, so that a suffix still fits. */}}
{{- define "redrive.fullname" -}}
{{- $name := .Values.fullnameOverride }}
{{- if not $name }}
{{- $own := contains .Chart.Name .Release.Name }}
{{- $name = printf "%s-%s" (.Release.Name | trunc (ternary 46 38 $own) | trimSuffix "-") (ternary "operator" "redrive-operator" $own) }}
{{- end }}
{{- if not (regexMatch "^[a-z][-a-z0-9]*$" $name) }}
{{- fail (printf "fullnameOverride must be set: a Service cannot be called %s, after the release %s" $name .Release.Name) }}
{{- end }}
{{- $name }}
{{- end }}

{{- /* By these the Deployment and the Service know the operator's pod. A Deployment never lets them be changed. */}}
{{- define "redrive.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: operator
{{- end }}

{{- /* Labels of the pod: the selector, `podLabels` and `commonLabels`; the first to name a label decides. */}}
{{- define "redrive.podLabels" -}}
{{- toYaml (merge (include "redrive.selector" . | fromYaml) (.Values.podLabels | default dict) (.Values.commonLabels | default dict)) }}
{{- end }}

{{- /* Labels of every object. Never `managed-by: redrive`: that is what the operator knows its own workers by. */}}
{{- define "redrive.labels" -}}
{{- include "redrive.labelsWith" (list . dict) }}
{{- end }}

{{- /* The same with further ones: of a list with the root and those. */}}
{{- define "redrive.labelsWith" -}}
{{- $root := index . 0 }}
{{- $own := include "redrive.selector" $root | fromYaml }}
{{- $_ := set $own "app.kubernetes.io/version" $root.Chart.AppVersion }}
{{- $_ := set $own "app.kubernetes.io/managed-by" $root.Release.Service }}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") }}
{{- toYaml (merge $own (index . 1 | default dict) ($root.Values.commonLabels | default dict)) }}
{{- end }}

{{- /* Which image: of a dict with `image` (repository, tag, digest) and `version`, the tag of none. */}}
{{- define "redrive.image" -}}
{{- if .image.digest }}
{{- with .image.tag }}{{ printf "%s:%s" $.image.repository . }}{{ else }}{{ .image.repository }}{{ end }}@{{ .image.digest }}
{{- else }}
{{- printf "%s:%s" .image.repository (.image.tag | default .version) }}
{{- end }}
{{- end }}

{{- define "redrive.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (include "redrive.fullname" .) }}
{{- end }}

{{- /* What a container must say of itself in a namespace that enforces Restricted. */}}
{{- define "redrive.restricted" -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
readOnlyRootFilesystem: true
runAsNonRoot: true
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- /* Whom the pods of workers are known by, in every namespace. */}}
{{- define "redrive.workers" -}}
app.kubernetes.io/managed-by: redrive
app.kubernetes.io/component: worker
{{- end }}
