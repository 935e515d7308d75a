# `make help` lists what there is. Everything needs Go; `make run` and `make test` also
# need git and a C compiler, and nothing else.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# A cluster for `make run` and `make demo`, if it is named on the command line. A
# KUBECONFIG of the environment is the user's own and is not touched.
ifeq ($(origin KUBECONFIG),command line)
cluster := --kubeconfig '$(abspath $(KUBECONFIG))'
endif

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: go
go: # says so when there is no Go, or one that is too old
	@command -v go >/dev/null || { echo "make: Go is not installed; https://go.dev/dl has it" >&2; exit 1; }
	@want=$$(awk '$$1 == "go" {print $$2}' go.mod); have=$$(GOTOOLCHAIN=local go env GOVERSION | sed 's/^go//'); \
	[ "$$(printf '%s\n' "$$want" "$$have" | sort -V | head -n 1)" = "$$want" ] || [ "$$(go env GOTOOLCHAIN)" != local ] || \
	{ echo "make: this is Go $$have, but Go $$want or newer is needed; https://go.dev/dl has it" >&2; exit 1; }

.PHONY: build
build: go ## build bin/operetta
	@go build -o bin/operetta ./cmd/operetta

bin/demo: go
	@go build -o $@ ./test/demo

.PHONY: run
run: bin/demo ## start a control plane and the operators, apply a sample, and stay (KUBECONFIG=file: use that cluster)
	@exec bin/demo $(cluster)

.PHONY: demo
demo: bin/demo ## the same, but end as soon as the sample is Ready
	@exec bin/demo --once $(cluster)
