#!/usr/bin/env bash
# What the image runs: `spark-cep` with the arguments it is given (`run --config FILE`; the word
# spark-cep itself may stand in front), another program of the image, or, given the one word
# `executor`, an executor as Spark's master for Kubernetes starts it, which says everything by
# variables. Only folders for scratch data need be writable.
set -euo pipefail

fail() {
  echo "error: $*" >&2
  exit 2
}

# The Java options SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1 and so on.
java_options() {
  local number=0 name
  options=()
  while name=SPARK_JAVA_OPT_$number && [[ -v $name ]]; do
    options+=("${!name}")
    number=$((number + 1))
  done
}

run_executor() {
  local name missing=()
  for name in SPARK_DRIVER_URL SPARK_EXECUTOR_ID SPARK_EXECUTOR_CORES SPARK_EXECUTOR_MEMORY \
    SPARK_APPLICATION_ID SPARK_EXECUTOR_POD_IP SPARK_EXECUTOR_POD_NAME SPARK_RESOURCE_PROFILE_ID; do
    [[ -n ${!name:-} ]] || missing+=("$name")
  done
  ((${#missing[@]} == 0)) || fail "an executor is started by Spark alone; not set: ${missing[*]}"
  # Spark mounts this folder; jars that the driver sends go to the working directory.
  local scratch=${SPARK_LOCAL_DIRS:-/tmp}
  scratch=${scratch%%,*}
  [[ -w $scratch ]] || fail "$scratch (SPARK_LOCAL_DIRS) is not a folder that can be written"
  cd "$scratch"
  export TMPDIR=$scratch
  local options classpath
  java_options
  classpath=${SPARK_CONF_DIR:+$SPARK_CONF_DIR:}${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}
  classpath+="$SPARK_HOME/jars/*${SPARK_EXTRA_CLASSPATH:+:$SPARK_EXTRA_CLASSPATH}"
  exec java "-Djava.io.tmpdir=$scratch" "${options[@]}" \
    "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" -cp "$classpath" \
    org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
    --driver-url "$SPARK_DRIVER_URL" \
    --executor-id "$SPARK_EXECUTOR_ID" \
    --cores "$SPARK_EXECUTOR_CORES" \
    --app-id "$SPARK_APPLICATION_ID" \
    --hostname "$SPARK_EXECUTOR_POD_IP" \
    --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
    --podName "$SPARK_EXECUTOR_POD_NAME"
}

(($# > 0)) || fail "nothing to run; give a command, as: run --config FILE"
if [[ $1 == executor ]]; then
  (($# == 1)) || fail "executor takes no arguments, found: ${*:2}"
  run_executor
fi
[[ -n $(type -P -- "$1") ]] || set -- spark-cep "$@"
exec "$@"
