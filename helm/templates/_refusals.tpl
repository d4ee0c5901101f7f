{{/*
What values.schema.json cannot say: values that contradict each other. Each refusal says what was found
and what is allowed. All templates that make a pod or its settings include this.
*/}}
{{- define "spark-cep.refuse" -}}
{{- include "spark-cep.refuseConfig" . -}}
{{- include "spark-cep.refuseSecrets" (dict "at" "config" "value" .Values.config) -}}
{{- include "spark-cep.refuseSecretPaths" (dict "at" "config" "value" .Values.config "values" .Values) -}}
{{- include "spark-cep.refuseCheckpoint" . -}}
{{- include "spark-cep.refuseAccess" . -}}
{{- include "spark-cep.refuseMemory" . -}}
{{- include "spark-cep.refuseRequests" . -}}
{{- include "spark-cep.refuseVolume" . -}}
{{- include "spark-cep.refuseInitContainers" . -}}
{{- end -}}

{{- define "spark-cep.refuseConfig" -}}
{{- $config := .Values.config -}}
{{- if not (dig "kafka" "bootstrap_servers" "" $config) -}}
{{- fail "config.kafka.bootstrap_servers is empty; the brokers are needed, as kafka-1:9092,kafka-2:9092" -}}
{{- end -}}
{{- if not $config.inputs -}}
{{- fail "config.inputs is empty; at least one input is needed, as {logins: {topics: [logins], event_time: ts}}" -}}
{{- end -}}
{{- if and (not (dig "registry" "url" "" $config)) (include "spark-cep.needsRegistry" .) -}}
{{- fail "config.registry.url is empty; the schema registry is needed, as http://registry:8081; without one every input has format: json and a reader_schema.file, and outputs has format: json" -}}
{{- end -}}
{{- $owned := list
  (list "state" "checkpoint" "checkpoint.persistence or checkpoint.uri")
  (list "rules" "folder" "rules.files or rules.existingConfigMap")
  (list "observability" "metrics_host" "nothing: the pages must answer the cluster")
  (list "observability" "metrics_port" "service.port")
  (list "spark" "master" "mode")
  (list "spark" "classes_folder" "nothing: the image holds the archive")
  (list "spark" "driver" "sparkPorts")
  (list "spark" "executors" "executor")
  (list "spark" "kubernetes" "mode and executor") -}}
{{- range $owned -}}
{{- if hasKey (get $config (index . 0) | default dict) (index . 1) -}}
{{- fail (printf "config.%s.%s is set by the chart; use %s" (index . 0) (index . 1) (index . 2)) -}}
{{- end -}}
{{- end -}}
{{- range $name := list "spark.driver.memory" "spark.driver.host" "spark.driver.bindAddress" "spark.driver.port" "spark.blockManager.port" "spark.local.dir" "spark.executor.instances" "spark.executor.cores" "spark.executor.memory" -}}
{{- if hasKey (dig "spark" "conf" dict $config) $name -}}
{{- fail (printf "config.spark.conf.%s is set by the chart; use the values driver, executor or sparkPorts" $name) -}}
{{- end -}}
{{- end -}}
{{- if eq (dig "trigger" "mode" "continuous" $config) "available_now" -}}
{{- fail "config.trigger.mode is available_now, which ends; the chart runs a job without end, which Kubernetes would start again: run back-tests as a Job of your own" -}}
{{- end -}}
{{- if and .Values.rules.files .Values.rules.existingConfigMap -}}
{{- fail "rules.files and rules.existingConfigMap are both set; give one of them" -}}
{{- end -}}
{{- $given := or .Values.rules.files .Values.rules.existingConfigMap -}}
{{- if include "spark-cep.rulesAreFiles" . -}}
{{- if not $given -}}
{{- fail "there are no rules; give rules.files ({NAME.yaml: text}) or rules.existingConfigMap, or another config.rules.source" -}}
{{- end -}}
{{- else if $given -}}
{{- fail (printf "config.rules.source is %s, and rules.files or rules.existingConfigMap is set: rules come from one place" (toString $config.rules.source)) -}}
{{- end -}}
{{- $grace := include "spark-cep.stopGrace" . | int -}}
{{- $given := include "spark-cep.terminationGrace" . | int -}}
{{- if lt $given (add $grace 5 | int) -}}
{{- fail (printf "driver.terminationGracePeriodSeconds is %d; it must be at least %d: config.lifecycle.stop_grace (%d s) and 5 s for closing" $given (add $grace 5) $grace) -}}
{{- end -}}
{{- end -}}

{{/* They get no mounts but their own. */}}
{{- define "spark-cep.refuseInitContainers" -}}
{{- range $container := .Values.initContainers -}}
{{- $mounts := $container.volumeMounts | default list -}}
{{- range $word := concat ($container.command | default list) ($container.args | default list) -}}
{{- if or (hasPrefix "/etc/spark-cep/" (toString $word)) (hasPrefix "/var/lib/spark-cep" (toString $word)) -}}
{{- $found := false -}}
{{- range $mounts }}{{ if or (eq .mountPath $word) (hasPrefix (printf "%s/" .mountPath) $word) }}{{ $found = true }}{{ end }}{{ end -}}
{{- if not $found -}}
{{- fail (printf "initContainers: %s names %s and mounts nothing there; give it volumeMounts, of the pod's volumes config, rules, checkpoint and secret-NAME" $container.name $word) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A secret written out would stand in a ConfigMap and in the release. */}}
{{- define "spark-cep.refuseSecrets" -}}
{{- $at := .at -}}
{{- if kindIs "map" .value -}}
{{- range $name, $value := .value -}}
{{- $here := printf "%s.%s" $at $name -}}
{{- if and (kindIs "string" $value) $value (regexMatch "(?i)(password|secret|token|credential|passphrase|jaas|user[._]info)" $name) (not (regexMatch "(?i)([._-](file|location|url|uri|class|type|mechanism|name))$" $name)) -}}
{{- fail (printf "%s is written out; give a reference, {file: /etc/spark-cep/secrets/NAME/KEY} or {env: NAME}: ConfigMaps and releases are no place for secrets" $here) -}}
{{- end -}}
{{- include "spark-cep.refuseSecrets" (dict "at" $here "value" $value) -}}
{{- end -}}
{{- else if kindIs "slice" .value -}}
{{- range $index, $value := .value -}}
{{- include "spark-cep.refuseSecrets" (dict "at" (printf "%s[%d]" $at $index) "value" $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A path among the secrets is below one of them, or of a mount of the user's own. */}}
{{- define "spark-cep.refuseSecretPaths" -}}
{{- $at := .at -}}
{{- $values := .values -}}
{{- if kindIs "map" .value -}}
{{- range $name, $value := .value -}}
{{- include "spark-cep.refuseSecretPaths" (dict "at" (printf "%s.%s" $at $name) "value" $value "values" $values) -}}
{{- end -}}
{{- else if kindIs "slice" .value -}}
{{- range $index, $value := .value -}}
{{- include "spark-cep.refuseSecretPaths" (dict "at" (printf "%s[%d]" $at $index) "value" $value "values" $values) -}}
{{- end -}}
{{- else if and (kindIs "string" .value) (hasPrefix "/etc/spark-cep/secrets/" .value) -}}
{{- $path := .value -}}
{{- $found := false -}}
{{- $names := list -}}
{{- range $values.secrets -}}
{{- $names = append $names .name -}}
{{- if hasPrefix (printf "/etc/spark-cep/secrets/%s/" .name) $path }}{{ $found = true }}{{ end -}}
{{- end -}}
{{- range $values.extraVolumeMounts -}}
{{- if hasPrefix .mountPath $path }}{{ $found = true }}{{ end -}}
{{- end -}}
{{- if not $found -}}
{{- fail (printf "%s is %s, and secrets has no such name; there are: %s" $at $path (join ", " $names | default "none")) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "spark-cep.refuseCheckpoint" -}}
{{- $checkpoint := .Values.checkpoint -}}
{{- if $checkpoint.uri -}}
{{- if not (regexMatch "^[a-z][a-z0-9+.-]*://." $checkpoint.uri) -}}
{{- fail (printf "checkpoint.uri is %s; allowed is a place on an object store or a distributed file system, as s3a://bucket/folder" $checkpoint.uri) -}}
{{- end -}}
{{- $own := dig "spark" "conf" dict .Values.config -}}
{{- if and (hasPrefix "s3://" $checkpoint.uri) (not (hasKey $own "spark.hadoop.fs.s3.impl")) -}}
{{- fail (printf "checkpoint.uri is %s; Spark's name for Amazon S3 is s3a://, with hadoop-aws among the jars" $checkpoint.uri) -}}
{{- end -}}
{{- if hasPrefix "file:" $checkpoint.uri -}}
{{- fail "checkpoint.uri is a local file, which goes with the pod; use checkpoint.persistence" -}}
{{- end -}}
{{- if $checkpoint.persistence.existingClaim -}}
{{- fail "checkpoint.uri and checkpoint.persistence.existingClaim are both set; give one of them" -}}
{{- end -}}
{{- else if and (eq .Values.mode "kubernetes") (not $checkpoint.persistence.existingClaim) (not (has "ReadWriteMany" $checkpoint.persistence.accessModes)) -}}
{{- fail (printf "mode is kubernetes, and checkpoint.persistence.accessModes is [%s]: executors on other nodes cannot reach it; use ReadWriteMany, or checkpoint.uri" (join ", " $checkpoint.persistence.accessModes)) -}}
{{- end -}}
{{- if and (eq .Values.mode "kubernetes") (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) -}}
{{- fail "mode is kubernetes, and serviceAccount.create is off without serviceAccount.name: the driver needs an account that may start executors" -}}
{{- end -}}
{{- if and (eq .Values.mode "kubernetes") (eq .Values.sparkPorts.driver .Values.sparkPorts.blockManager) -}}
{{- fail (printf "sparkPorts.driver and sparkPorts.blockManager are both %v; they must differ" .Values.sparkPorts.driver) -}}
{{- end -}}
{{- end -}}

{{/* What Kubernetes does not change of a StatefulSet that is there: the templates of its claims. */}}
{{- define "spark-cep.refuseVolume" -}}
{{- $found := lookup "apps/v1" "StatefulSet" .Release.Namespace (include "spark-cep.fullname" .) -}}
{{- if $found -}}
{{- $persistence := .Values.checkpoint.persistence -}}
{{- $own := not (or .Values.checkpoint.uri $persistence.existingClaim) -}}
{{- $claim := dig "spec" "volumeClaimTemplates" list $found | default list | first | default dict -}}
{{- $how := printf ", and Kubernetes does not change the claims of a StatefulSet that is there (%s): see docs/operations/kubernetes.md, A larger volume" (include "spark-cep.fullname" .) -}}
{{- if and $own (not $claim) -}}
{{- fail (printf "checkpoint.persistence: a claim by the chart is wanted, and the release has none%s" $how) -}}
{{- else if and $claim (not $own) -}}
{{- fail (printf "checkpoint: another place than the claim by the chart is wanted%s" $how) -}}
{{- else if $own -}}
{{- $size := dig "spec" "resources" "requests" "storage" "" $claim -}}
{{- if ne (include "spark-cep.bytes" (dict "text" $size "form" "kubernetes")) (include "spark-cep.bytes" (dict "text" $persistence.size "form" "kubernetes")) -}}
{{- fail (printf "checkpoint.persistence.size is %v, and was %v%s" $persistence.size $size $how) -}}
{{- end -}}
{{- $class := dig "spec" "storageClassName" "" $claim -}}
{{- if ne $class $persistence.storageClass -}}
{{- fail (printf "checkpoint.persistence.storageClass is '%s', and was '%s'%s" $persistence.storageClass $class $how) -}}
{{- end -}}
{{- $modes := dig "spec" "accessModes" list $claim -}}
{{- if ne (toJson $modes) (toJson $persistence.accessModes) -}}
{{- fail (printf "checkpoint.persistence.accessModes is %s, and was %s%s" (toJson $persistence.accessModes) (toJson $modes) $how) -}}
{{- end -}}
{{- $annotations := dig "metadata" "annotations" dict $claim | default dict -}}
{{- if ne (toJson $annotations) (toJson $persistence.annotations) -}}
{{- fail (printf "checkpoint.persistence.annotations is %s, and was %s%s" (toJson $persistence.annotations) (toJson $annotations) $how) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "spark-cep.refuseAccess" -}}
{{- $pages := .Values.config.observability | default dict -}}
{{- $monitored := or .Values.metrics.podMonitor.enabled .Values.metrics.serviceMonitor.enabled -}}
{{- if and .Values.metrics.podMonitor.enabled .Values.metrics.serviceMonitor.enabled -}}
{{- fail "metrics.podMonitor.enabled and metrics.serviceMonitor.enabled are both on: each sample would be taken twice; use one of them" -}}
{{- end -}}
{{- if and $monitored (get $pages "username") (not .Values.metrics.basicAuth.secretName) -}}
{{- fail "config.observability.username is set, and metrics.basicAuth.secretName is not: Prometheus could not log in" -}}
{{- end -}}
{{- if and .Values.metrics.basicAuth.secretName (not (get $pages "username")) -}}
{{- fail "metrics.basicAuth.secretName is set, and config.observability.username is not: the pages ask for no login" -}}
{{- end -}}
{{- if ne (empty (get $pages "ssl_certificate_file")) (empty (get $pages "ssl_key_file")) -}}
{{- fail "config.observability.ssl_certificate_file and ssl_key_file go together; only one is set" -}}
{{- end -}}
{{- end -}}
