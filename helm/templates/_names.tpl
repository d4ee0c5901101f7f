{{/* Names and labels. */}}

{{/* At most 52 characters: a StatefulSet adds eleven to its name in a label, and a label holds 63. */}}
{{- define "spark-cep.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "spark-cep.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "spark-cep.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "spark-cep.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: spark-cep
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "spark-cep.driverLabels" -}}
{{ include "spark-cep.selectorLabels" . }}
app.kubernetes.io/component: driver
{{- end -}}

{{- define "spark-cep.executorLabels" -}}
{{ include "spark-cep.selectorLabels" . }}
app.kubernetes.io/component: executor
{{- end -}}

{{- define "spark-cep.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "spark-cep.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "spark-cep.executorServiceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- printf "%s-executor" (include "spark-cep.fullname" .) -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "spark-cep.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "spark-cep.rulesConfigMap" -}}
{{- default (printf "%s-rules" (include "spark-cep.fullname" .)) .Values.rules.existingConfigMap -}}
{{- end -}}

{{- define "spark-cep.claim" -}}
{{- default (printf "checkpoint-%s-0" (include "spark-cep.fullname" .)) .Values.checkpoint.persistence.existingClaim -}}
{{- end -}}

{{/* The beginning of the job's transactional ids; topics of `helm test` begin with it, too. */}}
{{- define "spark-cep.transactionPrefix" -}}
{{- $prefix := dig "outputs" "transactional_id_prefix" "" .Values.config -}}
{{- ternary $prefix (include "spark-cep.fullname" .) (and (kindIs "string" $prefix) (not (empty $prefix))) -}}
{{- end -}}

{{/* HTTPS or HTTP, as the pages of the service are. */}}
{{- define "spark-cep.scheme" -}}
{{- ternary "HTTPS" "HTTP" (not (empty (dig "observability" "ssl_certificate_file" "" .Values.config))) -}}
{{- end -}}
