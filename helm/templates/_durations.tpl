{{/* Milliseconds of a duration as the service reads it, and the schema lets pass: "1 minute 30 s", "500 ms". */}}
{{- define "spark-cep.milliseconds" -}}
{{- $factors := dict
  "week" 604800000 "weeks" 604800000 "w" 604800000 "day" 86400000 "days" 86400000 "d" 86400000
  "hour" 3600000 "hours" 3600000 "h" 3600000
  "minute" 60000 "minutes" 60000 "min" 60000 "m" 60000
  "second" 1000 "seconds" 1000 "sec" 1000 "s" 1000
  "ms" 1 "millisecond" 1 "milliseconds" 1 "millis" 1 -}}
{{- if not (kindIs "string" .text) -}}
{{- fail (printf "%s comes from elsewhere; write it out: the chart computes with it" .setting) -}}
{{- end -}}
{{- $total := 0.0 -}}
{{- $text := lower .text -}}
{{- $pair := "([0-9]+(?:\\.[0-9]+)?)\\s*([a-z]+)" -}}
{{- range regexFindAll $pair $text -1 -}}
{{- $unit := regexReplaceAll $pair . "${2}" -}}
{{- $total = addf $total (mulf (float64 (regexReplaceAll $pair . "${1}")) (get $factors $unit)) -}}
{{- end -}}
{{- int64 (ceil $total) -}}
{{- end -}}

{{/* Seconds that a batch in flight may take after SIGTERM, rounded up. */}}
{{- define "spark-cep.stopGrace" -}}
{{- $grace := dig "lifecycle" "stop_grace" "20 seconds" .Values.config -}}
{{- divf (include "spark-cep.milliseconds" (dict "text" $grace "setting" "config.lifecycle.stop_grace") | float64) 1000.0 | ceil | int -}}
{{- end -}}

{{- define "spark-cep.terminationGrace" -}}
{{- $grace := include "spark-cep.stopGrace" . | int -}}
{{- if kindIs "invalid" .Values.driver.terminationGracePeriodSeconds -}}
{{- add $grace 10 -}}
{{- else -}}
{{- .Values.driver.terminationGracePeriodSeconds | int -}}
{{- end -}}
{{- end -}}
