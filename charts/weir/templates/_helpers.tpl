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
