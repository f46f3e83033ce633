{{/* The labels of every object. Helm adds its own when it installs. */}}
{{- define "weir.labels" -}}
app.kubernetes.io/part-of: weir
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The labels by which selectors find the pods of a component: controller or webhook. */}}
{{- define "weir.component" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/component: {{ . }}
{{- end }}

{{/* The reference of an image: (list .Values.images.controller .Chart.AppVersion) */}}
{{- define "weir.image" -}}
{{- $image := first . -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ default (last .) $image.tag }}
{{- end -}}
{{- end }}

{{/* Where a component listens: the flag that moves each port, and where it is without. */}}
{{- define "weir.ports" -}}
{{- if eq . "webhook" -}}
webhook: {flag: webhook-port, usual: 9443}
{{- else -}}
fleet: {flag: fleet-bind-address, usual: 15030}
hub: {flag: federation-bind-address, usual: 15040}
{{- end }}
metrics: {flag: metrics-bind-address, usual: 8080}
health: {flag: health-probe-bind-address, usual: 8081}
{{- end }}

{{/*
A flag that moves a port would leave the Services, the probes and the NetworkPolicy behind.
One that turns a listener off is as good as any. The argument is (list $ "controller").
*/}}
{{- define "weir.refuseMovedPorts" -}}
{{- $component := last . }}
{{- $values := get (first .).Values $component }}
{{- range $name, $port := include "weir.ports" $component | fromYaml }}
{{- range $values.extraArgs }}
{{- if and (regexMatch (printf "^--%s(=|$)" $port.flag) .) (ne . (printf "--%s=0" $port.flag)) }}
{{- fail (printf "%s.extraArgs has %s: set %s.ports.%s, which Services and probes follow" $component . $component $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- if ne (len (values $values.ports | toStrings | uniq)) (len $values.ports) }}
{{- fail (printf "%s.ports has one number twice: every listener needs one of its own" $component) }}
{{- end }}
{{- end }}
