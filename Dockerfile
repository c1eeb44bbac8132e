# The image of streamproxy: one static binary, a CA bundle, nothing else.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /streamproxy ./cmd/streamproxy

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /streamproxy /streamproxy
# A number, not a name: Kubernetes' runAsNonRoot cannot look names up, and scratch has none.
USER 65532:65532
EXPOSE 6380 9380
# There is no shell and no curl here; the binary asks itself.
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s --retries=3 CMD ["/streamproxy", "healthcheck"]
ENTRYPOINT ["/streamproxy"]
