{{/*
The service's settings: those of the values, and over them what the chart knows. Values that the chart sets
are refused in _refusals.tpl, so nothing is overwritten in silence.
*/}}
{{- define "spark-cep.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if not (dig "registry" "url" "" $config) }}{{ $_ := unset $config "registry" }}{{ end -}}
{{- $driver := printf "%s-driver.%s.svc" (include "spark-cep.fullname" .) .Release.Namespace -}}
{{- $conf := dict "spark.driver.memory" .Values.driver.memory -}}
{{- $spark := dict "app_name" (include "spark-cep.fullname" .) -}}
{{- if eq .Values.mode "kubernetes" -}}
{{- $executor := .Values.executor -}}
{{- $_ := set $spark "master" "k8s://https://kubernetes.default.svc" -}}
{{- $_ := set $spark "driver" (dict "host" $driver "bind_address" "0.0.0.0" "port" .Values.sparkPorts.driver "block_manager_port" .Values.sparkPorts.blockManager) -}}
{{- $size := dict "count" $executor.instances "cores" $executor.cores "memory" $executor.memory -}}
{{- with $executor.memoryOverhead }}{{ $_ := set $size "memory_overhead" . }}{{ end -}}
{{- $_ := set $spark "executors" $size -}}
{{- $pods := dict
  "namespace" .Release.Namespace
  "image" (include "spark-cep.image" .)
  "image_pull_policy" .Values.image.pullPolicy
  "driver_pod" (printf "%s-0" (include "spark-cep.fullname" .))
  "service_account" (include "spark-cep.executorServiceAccountName" .)
  "pod_template_file" "/etc/spark-cep/executor/pod.yaml" -}}
{{- with .Values.image.pullSecrets }}{{ $_ := set $pods "image_pull_secrets" . }}{{ end -}}
{{- with $executor.requestCpu }}{{ $_ := set $pods "cpu_request" (toString .) }}{{ end -}}
{{- with $executor.limitCpu }}{{ $_ := set $pods "cpu_limit" (toString .) }}{{ end -}}
{{- with $executor.secretEnv }}{{ $_ := set $pods "secret_env" . }}{{ end -}}
{{- if not .Values.checkpoint.uri -}}
{{- $_ := set $pods "checkpoint_claim" (include "spark-cep.claim" .) -}}
{{- $_ := set $pods "checkpoint_mount" "/var/lib/spark-cep" -}}
{{- end -}}
{{- $_ := set $spark "kubernetes" $pods -}}
{{- else -}}
{{- $_ := set $spark "master" (printf "local[%d,%d]" (int .Values.driver.cores) (int .Values.driver.taskAttempts)) -}}
{{- /* Not with executors: Spark would mount a volume of its own there in their pods, which have one. */ -}}
{{- $_ := set $conf "spark.local.dir" "/tmp" -}}
{{- $_ := set $conf "spark.driver.host" "127.0.0.1" -}}
{{- $_ := set $conf "spark.driver.bindAddress" "127.0.0.1" -}}
{{- end -}}
{{- $_ := set $spark "conf" $conf -}}
{{- $made := dict
  "state" (dict "checkpoint" (default "/var/lib/spark-cep/checkpoint" .Values.checkpoint.uri))
  "observability" (dict "metrics_host" "0.0.0.0" "metrics_port" .Values.service.port)
  "spark" $spark -}}
{{- if include "spark-cep.rulesAreFiles" . }}{{ $_ := set $made "rules" (dict "folder" "/etc/spark-cep/rules") }}{{ end -}}
{{- toYaml (mergeOverwrite $made $config) -}}
{{- end -}}

{{/* Not empty where schemas come from the registry, or go there. */}}
{{- define "spark-cep.needsRegistry" -}}
{{- $avro := ne (dig "outputs" "format" "avro" .Values.config) "json" -}}
{{- range .Values.config.inputs -}}
{{- if not (and (eq (toString .format) "json") (dig "reader_schema" "file" "" .)) }}{{ $avro = true }}{{ end -}}
{{- end -}}
{{- ternary "yes" "" $avro -}}
{{- end -}}

{{/* Not empty where rules are files, and so come from a ConfigMap. */}}
{{- define "spark-cep.rulesAreFiles" -}}
{{- ternary "yes" "" (eq (toString (dig "rules" "source" "folder" .Values.config)) "folder") -}}
{{- end -}}

{{/*
Not empty where the service is known to read rules while it runs; settings from elsewhere may say otherwise.
*/}}
{{- define "spark-cep.watchesRules" -}}
{{- $known := kindIs "string" (dig "rules" "refresh_interval" "" .Values.config) -}}
{{- range .Values.env -}}
{{- if hasPrefix "SPARK_CEP__RULES__REFRESH_INTERVAL" (upper .name) }}{{ $known = false }}{{ end -}}
{{- end -}}
{{- ternary "yes" "" $known -}}
{{- end -}}
