{{/* The endpoint of a PodMonitor or ServiceMonitor. */}}
{{- define "spark-cep.endpoint" -}}
{{- $root := .root -}}
port: http
path: /metrics
scheme: {{ include "spark-cep.scheme" $root | lower }}
interval: {{ .monitor.interval }}
{{- with .monitor.tlsConfig }}
tlsConfig: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.metrics.basicAuth }}
{{- if .secretName }}
basicAuth:
  username: {name: {{ .secretName }}, key: {{ .usernameKey }}}
  password: {name: {{ .secretName }}, key: {{ .passwordKey }}}
{{- end }}
{{- end }}
{{- with .monitor.relabelings }}
relabelings: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .monitor.metricRelabelings }}
metricRelabelings: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
