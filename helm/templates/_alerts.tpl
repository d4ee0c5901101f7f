{{/* The groups of a file of alerts, with the changes that the values make. */}}
{{- define "spark-cep.alertGroups" -}}
{{- $values := .root.Values.metrics.prometheusRule -}}
{{- range $group := .groups }}
{{- $kept := list }}
{{- range $rule := $group.rules }}
{{- if not (has $rule.alert $values.disabled) }}
{{- $change := get $values.overrides $rule.alert | default dict }}
{{- $labels := merge (dict) $values.alertLabels $rule.labels }}
{{- with $change.severity }}{{ $labels = merge (dict "severity" .) $labels }}{{ end }}
{{- $annotations := $rule.annotations }}
{{- /* Without the folder's address it would be no URL, and receivers make links of `runbook_url`. */}}
{{- with $values.runbookBase }}
{{- $link := printf "%s/%s" (trimSuffix "/" .) $annotations.runbook }}
{{- $annotations = merge (dict "runbook_url" $link) (omit $annotations "runbook") }}
{{- end }}
{{- $rule = merge (dict "labels" $labels "annotations" $annotations) (omit $change "severity") (omit $rule "labels" "annotations") }}
{{- $kept = append $kept $rule }}
{{- end }}
{{- end }}
{{- if $kept }}
- name: {{ $group.name }}
  rules: {{- toYaml $kept | nindent 4 }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "spark-cep.alertLabels" -}}
{{ include "spark-cep.labels" . }}
{{- with .Values.metrics.prometheusRule.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}
