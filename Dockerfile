# The service, as driver and as executor: see docs/deployment.md.
#
#   docker build --build-arg VERSION=0.1.0 --build-arg REVISION=$(git rev-parse HEAD) -t spark-cep .
#
# Behind mirrors: --secret id=pip,src=pip.conf, --secret id=apt,src=debian.sources.

# The digest of the index for all architectures. To renew it: `docker buildx imagetools inspect
# debian:bookworm-slim`, or `skopeo inspect --raw docker://debian:bookworm-slim | sha256sum`.
ARG BASE=docker.io/library/debian:bookworm-20260824-slim@sha256:88200866dfff7ea7f5cbcb6ec7c8a701889efe6fe859fe64d6990e4b07ea4171

FROM ${BASE} AS runtime
RUN --mount=type=bind,source=image,target=/image \
    --mount=type=secret,id=apt,target=/etc/apt/sources.list.d/debian.sources \
    /image/system.sh runtime
ENV LANG=C.UTF-8 \
    PATH=/opt/spark-cep/venv/bin:/usr/local/bin:/usr/bin:/bin \
    SPARK_HOME=/opt/spark-cep/venv/lib/python3.11/site-packages/pyspark \
    # The working directory holds nothing to import.
    PYTHONSAFEPATH=1 \
    PYTHONUNBUFFERED=1 \
    # The kernel is compiled here, for every processor, and read where nothing can be written.
    NUMBA_CACHE_DIR=/opt/spark-cep/kernel \
    NUMBA_CACHE_LOCATOR_CLASSES=spark_cep.columns.prepared_cache.PreparedCache \
    NUMBA_CPU_NAME=generic \
    SPARK_CEP__SPARK__CLASSES_FOLDER=/opt/spark-cep/classes

FROM runtime AS build
RUN --mount=type=bind,source=image,target=/image \
    --mount=type=secret,id=apt,target=/etc/apt/sources.list.d/debian.sources \
    /image/system.sh build
RUN --mount=type=bind,source=.,target=/sources \
    --mount=type=secret,id=pip,target=/etc/pip.conf \
    /sources/image/install.sh /sources

FROM runtime
COPY --from=build /opt/spark-cep /opt/spark-cep
ARG VERSION=0.1.0
ARG REVISION=unknown
ARG CREATED=unknown
ARG SOURCE=unknown
LABEL org.opencontainers.image.title="spark-cep" \
      org.opencontainers.image.description="Complex event processing on Kafka and Spark" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.source="${SOURCE}"
USER 10001:10001
WORKDIR /tmp
EXPOSE 9108
HEALTHCHECK --interval=30s --timeout=6s --start-period=5m \
    CMD ["/opt/spark-cep/venv/bin/python", "-I", "/opt/spark-cep/livez.py"]
ENTRYPOINT ["/usr/bin/tini", "-s", "--", "/opt/spark-cep/entrypoint"]
CMD ["spark-cep", "run", "--config", "/etc/spark-cep/config.yaml"]
