{{/* Labels of everything but pods. */}}
{{- define "berth.labels" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "berth.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "berth.pullSecrets" -}}
{{- with .Values.image.pullSecrets -}}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{/*
"true" where a kind is there and is somebody else's: of no release, of another one, or brought by its own project
after us (their generator leaves its mark). Such kinds are left as they are.
*/}}
{{- define "berth.foreign" -}}
{{- $there := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" .name }}
{{- if $there }}
{{- $notes := dig "metadata" "annotations" dict $there }}
{{- if or (ne (get $notes "meta.helm.sh/release-name") .root.Release.Name)
          (ne (get $notes "meta.helm.sh/release-namespace") .root.Release.Namespace)
          (hasKey $notes "controller-gen.kubebuilder.io/version") }}true{{ end }}
{{- end }}
{{- end }}

{{/*
"true" where the controller's webhook converts Kueue's kinds: with a certificate of its own, because it must tell the
API server whom to trust.
*/}}
{{- define "berth.converts" -}}
{{- if and .Values.webhook.enabled .Values.webhook.conversion (not .Values.webhook.certificateSecret) }}true{{ end }}
{{- end }}

{{/* Two servers of one pod on one port: the second would never start. A dict of the values' names and ports. */}}
{{- define "berth.portsDiffer" -}}
{{- $taken := dict }}
{{- range $name, $port := . }}
{{- $key := printf "%v" $port }}
{{- if hasKey $taken $key }}
{{- fail (printf "%s and %s are both %s: want a port for each" (get $taken $key) $name $key) }}
{{- end }}
{{- $_ := set $taken $key $name }}
{{- end }}
{{- end }}

{{/* berth's own pods (the page asks agents), Prometheus, and the API server for `berth gpus`. */}}
{{- define "berth.metricsReaders" -}}
- podSelector:
    matchLabels: {app.kubernetes.io/name: berth}
- namespaceSelector:
    {{- toYaml .Values.networkPolicy.metricsNamespaces | nindent 4 }}
{{- range .Values.networkPolicy.apiServer }}
- ipBlock: {cidr: {{ . | quote }}}
{{- end }}
{{- end }}
