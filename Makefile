# `make` lists what there is. Everything needs Go and nothing else, but for `make test`,
# whose race detector needs a C compiler.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# A cluster to use instead of starting one, if it is named on the command line of make.
# A KUBECONFIG of the environment is the user's own and is not touched.
ifeq ($(origin KUBECONFIG),command line)
cluster := --kubeconfig '$(abspath $(KUBECONFIG))'
export OPERETTA_TEST_KUBECONFIG := $(abspath $(KUBECONFIG))
endif

# How the binary is built everywhere, here, in test/demo, in test/stages.sh and in the
# Dockerfile: one that needs nothing at run time, and one set of compiled packages, which
# what is run from here shares with it.
export CGO_ENABLED := 0
export GOFLAGS += -trimpath

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile
	@echo
	@echo "  KUBECONFIG=file behind run, demo, demo-cluster, test and test-e2e uses that cluster instead of starting one."

# This check has no help: it is the first step of the others.
.PHONY: go
go:
	@command -v go >/dev/null || { echo "make: Go is not installed; https://go.dev/dl has it" >&2; exit 1; }
	@want=$$(awk '$$1 == "go" {print $$2}' go.mod); have=$$(cd / && GOTOOLCHAIN=local go env GOVERSION | sed 's/^go//; s/[- ].*//'); \
	oldest=$$(printf '%s\n' "$$want" "$$have" | sort -t. -k1,1n -k2,2n -k3,3n | head -n 1); \
	[ "$$oldest" = "$$want" ] || [ "$$(cd / && go env GOTOOLCHAIN)" != local ] || \
	{ echo "make: this is Go $$have, but Go $$want or newer is needed; https://go.dev/dl has it" >&2; exit 1; }

.PHONY: cc
cc: go
	@command -v "$$(go env CC | cut -d ' ' -f 1)" >/dev/null || \
	{ echo "make: there is no C compiler ($$(go env CC)), which go test -race needs; install gcc or clang" >&2; exit 1; }

.PHONY: build
build: go ## build bin/operetta
	@go build -o bin/operetta ./cmd/operetta

# VERSION is that of the release, and BASE the URL of the folder in which the archives will be.
.PHONY: krew
krew: go ## build the archives of the plugin for kubectl, and its manifest for krew (VERSION=v0.1.0 BASE=https://...)
	@go run ./config/krew -version '$(VERSION)' -base '$(BASE)'

bin/demo: go
	@[ -e $@ ] || echo "  … build $@ (half a minute the first time)"
	@go build -o $@ ./test/demo

.PHONY: run
run: bin/demo ## start a control plane and the operators, apply a sample, and stay
	@exec bin/demo $(cluster)

.PHONY: demo
demo: bin/demo ## the same, but end as soon as the sample is Ready
	@exec bin/demo --once $(cluster)

.PHONY: demo-cluster
demo-cluster: bin/demo ## install an operator of two processes, serve Packages, also from a registry, kill the leader, try canaries
	@exec bin/demo --installed $(cluster)

.PHONY: test
test: cc bin/gotestsum ## all checks and tests
	@exec test/stages.sh

.PHONY: test-unit
test-unit: bin/gotestsum ## the tests that need no control plane
	@exec test/stages.sh unit

.PHONY: test-e2e
test-e2e: bin/gotestsum ## the tests on a control plane
	@exec test/stages.sh live e2e

.PHONY: test-long
test-long: bin/gotestsum ## those of them that take minutes, at full length
	@exec test/stages.sh long

.PHONY: bench
bench: go ## the benchmarks
	@go test -run '^$$' -bench . -benchmem ./...

.PHONY: bench-first
bench-first: go ## how long make demo takes to its first picture and to its end, with nothing built (6 minutes)
	@exec test/first-sight.sh

# N is how many resources, SCENARIO what is measured; the program lists what there is.
.PHONY: bench-scale
bench-scale: go ## compare with a hand-written operator on a control plane (minutes; N=50 SCENARIO=create)
	@go build -o bin/scale/bench ./test/scale && exec bin/scale/bench $(if $(N),-n $(N)) $(if $(SCENARIO),-scenario $(SCENARIO))

.PHONY: mutate
mutate: go ## change the engine in 300 places and see whether its tests notice (a quarter of an hour)
	@go run ./test/mutate

.PHONY: generate
generate: go ## write the generated files and format the source
	@go generate ./...
	@gofmt -l -w $$(git ls-files '*.go')
	@go tool cue fmt ./cue/... ./schemas/...

.PHONY: verify
verify: bin/gotestsum ## check that generated files, formatting and go.mod files are current
	@exec test/stages.sh cue generated modules

# What tests and checks with is pinned in a module of its own, whose requirements are not the
# product's. Each is the last part of a package that go.mod there names as a tool.
bin/gotestsum bin/golangci-lint bin/govulncheck: bin/%: test/tools/go.mod | go
	@echo "  … build $* (the first time; the linter takes minutes)"
	@go -C test/tools build -o ../../$@ "$$(awk 'NF < 3 && /\/$*$$/ {print $$NF}' test/tools/go.mod)"

.PHONY: lint
lint: bin/golangci-lint ## all linters
	@for module in . schemas/internal/k8sgen test/promql; do \
	  (cd $$module && $(CURDIR)/bin/golangci-lint run --config $(CURDIR)/.golangci.yml ./...) || failed=1; done; [ -z "$$failed" ]

.PHONY: vuln
vuln: bin/govulncheck ## look for known vulnerabilities in what is used
	@bin/govulncheck ./... 2>&1 | tee bin/vuln.log; status=$${PIPESTATUS[0]}; \
	if grep -q 'fetching vulnerabilities' bin/vuln.log; then \
	  echo "make vuln: nothing was checked: the vulnerability database, https://vuln.go.dev, cannot be reached from here" >&2; fi; exit $$status

.PHONY: clean
clean: ## remove what was built here (what the control plane consists of stays in the user's cache folder)
	@rm -rf bin
