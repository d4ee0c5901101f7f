{{/*
Volumes and mounts that driver and executors share. By its name Spark knows the scratch space of an executor;
otherwise it would mount another at the same path, which Kubernetes refuses.
*/}}
{{- define "spark-cep.sharedVolumes" -}}
- name: spark-local-dir-1
  emptyDir:
    sizeLimit: {{ .Values.scratchSize }}
{{- range .Values.secrets }}
- name: secret-{{ .name }}
  secret:
    secretName: {{ .secretName }}
    defaultMode: 0440
    {{- with .items }}
    items: {{- toYaml . | nindent 6 }}
    {{- end }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "spark-cep.sharedMounts" -}}
- name: spark-local-dir-1
  mountPath: /tmp
{{- range .Values.secrets }}
- name: secret-{{ .name }}
  mountPath: /etc/spark-cep/secrets/{{ .name }}
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "spark-cep.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .topologySpreadConstraints }}
topologySpreadConstraints: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* A probe of one page: path, and the probe's own settings. */}}
{{- define "spark-cep.probe" -}}
httpGet:
  path: {{ .path }}
  port: http
  scheme: {{ include "spark-cep.scheme" .root }}
{{ toYaml .probe }}
{{- end -}}
