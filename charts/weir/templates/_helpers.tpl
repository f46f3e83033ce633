{{/* The labels of every object. Helm adds its own when it installs. */}}
{{- define "weir.labels" -}}
app.kubernetes.io/part-of: weir
{{- end }}

{{/* What every selector of the controller's pods says. */}}
{{- define "weir.controller" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/component: controller
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

{{/* Where the controller listens: the flag that moves each port, and where it is without. */}}
{{- define "weir.ports" -}}
webhook: {flag: webhook-port, usual: 9443}
fleet: {flag: fleet-bind-address, usual: 15030}
hub: {flag: federation-bind-address, usual: 15040}
metrics: {flag: metrics-bind-address, usual: 8080}
health: {flag: health-probe-bind-address, usual: 8081}
{{- end }}

{{/*
A flag that moves a port would leave the Services, the probes and the NetworkPolicy behind.
One that turns a listener off is as good as any.
*/}}
{{- define "weir.refuseMovedPorts" -}}
{{- range $name, $port := include "weir.ports" . | fromYaml }}
{{- range $.Values.controller.extraArgs }}
{{- if and (regexMatch (printf "^--%s(=|$)" $port.flag) .) (ne . (printf "--%s=0" $port.flag)) }}
{{- fail (printf "controller.extraArgs has %s: set controller.ports.%s, which Services and probes follow" . $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- if ne (len (values .Values.controller.ports | toStrings | uniq)) (len .Values.controller.ports) }}
{{- fail "controller.ports has one number twice: every listener needs one of its own" }}
{{- end }}
{{- end }}
