{{/* Sizes, and what the pods' memory must hold at least. All in bytes. */}}

{{/* Bytes of a size: of Kubernetes (4Gi), of Java (1g, 512m) or of the settings (512 MiB), by `form`. */}}
{{- define "spark-cep.bytes" -}}
{{- $forms := dict
  "kubernetes" (dict "" 1 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18
    "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 "Ei" 1152921504606846976)
  "java" (dict "m" 1048576 "g" 1073741824)
  "settings" (dict "b" 1 "bytes" 1 "kb" 1e3 "mb" 1e6 "gb" 1e9 "kib" 1024 "mib" 1048576 "gib" 1073741824) -}}
{{- if kindIs "string" .text -}}
{{- $text := nospace .text -}}
{{- $unit := regexFind "[A-Za-z]*$" $text -}}
{{- $unit = ternary (lower $unit) $unit (eq .form "settings") -}}
{{- mulf (trimSuffix (regexFind "[A-Za-z]*$" $text) $text | float64) (get (get $forms .form) $unit | float64) | int64 -}}
{{- else -}}
{{- int64 .text -}}
{{- end -}}
{{- end -}}

{{/* RocksDB's share; 0 where the value comes from elsewhere. */}}
{{- define "spark-cep.rocksdbBytes" -}}
{{- $size := dig "state" "rocksdb_memory" "512 MiB" .Values.config -}}
{{- if kindIs "string" $size }}{{ include "spark-cep.bytes" (dict "text" $size "form" "settings") }}{{ else }}0{{ end -}}
{{- end -}}

{{/* Of the driver's pod, without what cores need for their tasks: with less it does not start. */}}
{{- define "spark-cep.leastMemory" -}}
{{- $heap := include "spark-cep.bytes" (dict "text" .Values.driver.memory "form" "java") | int64 -}}
{{- if eq .Values.mode "kubernetes" -}}
{{- add $heap 536870912 -}}
{{- else -}}
{{- add $heap (include "spark-cep.rocksdbBytes" . | int64) 1073741824 -}}
{{- end -}}
{{- end -}}

{{/* With 700 MiB for each core: as much as it takes at its peak. */}}
{{- define "spark-cep.advisedMemory" -}}
{{- $cores := ternary 0 (int64 .Values.driver.cores) (eq .Values.mode "kubernetes") -}}
{{- add (include "spark-cep.leastMemory" . | int64) (mul $cores 734003200) -}}
{{- end -}}

{{/* The pod's limit; 0 where there is none. */}}
{{- define "spark-cep.memoryLimit" -}}
{{- $limit := dig "limits" "memory" "" .Values.driver.resources -}}
{{- if $limit }}{{ include "spark-cep.bytes" (dict "text" $limit "form" "kubernetes") }}{{ else }}0{{ end -}}
{{- end -}}

{{/* The API server takes a StatefulSet whose pods it will refuse: they never come. */}}
{{- define "spark-cep.refuseRequests" -}}
{{- $limits := .Values.driver.resources.limits | default dict -}}
{{- $units := dict "" 1000 "m" 1 "k" 1e6 "M" 1e9 "G" 1e12 "Ki" 1024e3 "Mi" 1048576e3 "Gi" 1073741824e3 "Ti" 1099511627776e3 -}}
{{- range $name, $request := .Values.driver.resources.requests | default dict -}}
{{- $sizes := list -}}
{{- range $each := list $request (get $limits $name | default "") -}}
{{- $text := toString $each -}}
{{- $unit := regexFind "[A-Za-z]*$" $text -}}
{{- $sizes = append $sizes (mulf (trimSuffix $unit $text | float64) (get $units $unit | default 0 | float64)) -}}
{{- end -}}
{{- if and (hasKey $limits $name) (gt (index $sizes 0) (index $sizes 1)) (index $sizes 1) -}}
{{- fail (printf "driver.resources.requests.%s is %v; it must be at most driver.resources.limits.%s (%v)" $name $request $name (get $limits $name)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "spark-cep.refuseMemory" -}}
{{- $limit := include "spark-cep.memoryLimit" . | int64 -}}
{{- $least := include "spark-cep.leastMemory" . | int64 -}}
{{- if and $limit (lt $limit $least) -}}
{{- $parts := printf "driver.memory (%s)" .Values.driver.memory -}}
{{- if ne .Values.mode "kubernetes" }}{{ $parts = printf "%s, config.state.rocksdb_memory (%v)" $parts (dig "state" "rocksdb_memory" "512 MiB" .Values.config) }}{{ end -}}
{{- fail (printf "driver.resources.limits.memory is %v; it must be at least %d MiB, better %d MiB, with %s: raise it, or lower those" .Values.driver.resources.limits.memory (div (add $least 1048575) 1048576) (div (add (include "spark-cep.advisedMemory" . | int64) 1048575) 1048576) $parts) -}}
{{- end -}}
{{- if and (eq .Values.mode "kubernetes") .Values.executor.memoryOverhead -}}
{{- $least := add (include "spark-cep.rocksdbBytes" . | int64) 402653184 -}}
{{- if lt (include "spark-cep.bytes" (dict "text" .Values.executor.memoryOverhead "form" "settings") | int64) (int64 $least) -}}
{{- fail (printf "executor.memoryOverhead is %s; it must be at least %d MiB: config.state.rocksdb_memory (%v) and 384 MiB of Java's own, and better 512 MiB more for each core" .Values.executor.memoryOverhead (div (add $least 1048575) 1048576) (dig "state" "rocksdb_memory" "512 MiB" .Values.config)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
