{{/* The template of an executor's pod; the service names its container `executor`. */}}
{{- define "spark-cep.executorPod" -}}
apiVersion: v1
kind: Pod
metadata:
  labels:
    {{- include "spark-cep.executorLabels" . | nindent 4 }}
    {{- with .Values.commonLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with .Values.executor.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.executor.podAnnotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  securityContext: {{- toYaml .Values.podSecurityContext | nindent 4 }}
  {{- with include "spark-cep.placement" .Values.executor | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  containers:
    - name: executor
      securityContext: {{- toYaml .Values.securityContext | nindent 8 }}
      volumeMounts: {{- include "spark-cep.sharedMounts" . | nindent 8 }}
  volumes: {{- include "spark-cep.sharedVolumes" . | nindent 4 }}
{{- end -}}
