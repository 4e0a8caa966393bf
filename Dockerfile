# The decision service as an image: built from this checkout, runs as a user without rights, on a
# read-only file system, and asks nothing of the network at run time but its database.
#
#     docker build -t evenhand .
#     docker run --read-only --tmpfs /tmp -v ./service:/service -p 8377:8377 evenhand
#
# /service holds service.toml and, for SQLite, the ledger. deploy/ has compose, systemd and
# Kubernetes files; docs/operating.md leads through them.
FROM python:3.11.13-slim-bookworm AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY pyproject.toml hatch_build.py constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/evenhand \
    && /opt/evenhand/bin/pip install -c constraints.txt '.[service,models]'

FROM python:3.11.13-slim-bookworm
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin evenhand \
    && install -d -o evenhand -g evenhand -m 0700 /service
COPY --from=build /opt/evenhand /opt/evenhand
ENV PATH=/opt/evenhand/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /service
VOLUME /service
EXPOSE 8377
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8377/health/live', timeout=2)"]
ENTRYPOINT ["evenhand"]
CMD ["serve", "--config", "/service/service.toml", "--host", "0.0.0.0", "--plain-http"]
