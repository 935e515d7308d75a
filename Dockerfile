# The image of the engine: it has no operator in it. Packages are mounted at /packages, or
# copied there by an image that builds on this one:
#
#	docker build -t operetta .
#	docker run --rm -v "$PWD/cue:/packages/cue:ro" operetta vet /packages/...
#
# It needs no privilege, no shell and no writable file but /tmp.
#
# The images below are named by tag and digest: a tag may be another image tomorrow, so that
# two builds of one commit would differ, and whoever can write the tag would be in the build.
# The digest is that of the index, which is for all platforms. This prints the present one:
#
#	docker buildx imagetools inspect golang:1.26.8-bookworm
#
# Bots such as Renovate and Dependabot do both for a pull request.

FROM --platform=$BUILDPLATFORM golang:1.26.8-bookworm@sha256:a688600ca24f8a4d3ca77f95b0dd40704a9fc787c826660eb7ba0b641b8b175d AS build
WORKDIR /src

# The modules change less often than the source, so they are a layer of their own.
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download

COPY . .
ENV GOCACHE=/go/cache
ARG TARGETOS
ARG TARGETARCH
ARG VERSION
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/go/cache \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /operetta ./cmd/operetta

# Whoever gives a binary to others gives the licences and notices of its parts with it.
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/go/cache \
    go build -o /gather ./test/image/licenses && \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH /gather ./cmd/operetta /licenses

FROM gcr.io/distroless/static-debian12:nonroot@sha256:afa5c872c891853ca7fcf1f12c3edb23f7eeef36189728842dd51042ff57f7ab
COPY --from=build /operetta /operetta
COPY --from=build /licenses /licenses
# CUE keeps what it unpacks there; the root file system may be read-only.
ENV CUE_CACHE_DIR=/tmp/cue
USER 65532:65532
WORKDIR /packages
ENTRYPOINT ["/operetta"]
CMD ["run", "/packages/..."]
