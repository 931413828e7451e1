# Needs Go and nothing else. Tools are built at pinned versions into .bin.

GO            ?= go
BIN           := $(CURDIR)/.bin
GOLANGCI_VER  := v2.15.0
GOFUMPT_VER   := v0.12.0
VULN_VER      := v1.9.0
# Point these at a binary that is already there to save building it: make check GOLANGCI=/usr/local/bin/golangci-lint
GOLANGCI      ?= $(BIN)/golangci-lint
GOFUMPT       ?= $(BIN)/gofumpt
VULN          ?= $(BIN)/govulncheck

# The race detector needs cgo and a C compiler; everything else is pure Go.
RACE          ?=
TEST_TIMEOUT  ?= 6m
RACE_TIMEOUT  ?= 10m
FUZZTIME      ?= 10s
BENCHFLAGS    ?=
TESTFLAGS     ?=

# The packages that share memory between goroutines.
RACE_PKGS     = $(shell $(GO) list ./... | grep -E '/caisson/(queue|schedule|pools|idempotency|dlq|worker|webhook|internal/(sqlitefile|config|admin))(/|$$)')

.DEFAULT_GOAL := help
.PHONY: help check fmt lint vet build arch vuln test race soak bench fuzz tools

help: ## show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

check: fmt vet lint build arch ## formatting, vet, lint, build, architecture

fmt: $(BIN)/.gofumpt-$(GOFUMPT_VER)
	@out=$$($(GOFUMPT) -l . ) || exit 1; \
	if [ -n "$$out" ]; then echo "not formatted (run $(GOFUMPT) -w on them):"; echo "$$out"; exit 1; fi

vet:
	$(GO) vet ./...

lint: $(BIN)/.golangci-$(GOLANGCI_VER)
	$(GOLANGCI) run --allow-parallel-runners ./...

build:
	$(GO) build ./...

arch:
	$(GO) test -count=1 ./internal/architecture

# Not part of check: it asks the vulnerability database over the network, and check has to work without one.
vuln: $(BIN)/.govulncheck-$(VULN_VER) ## known vulnerabilities in what we call (needs the network)
	$(VULN) ./...

test: ## every test; RACE=1 adds the race detector
	$(GO) test -timeout $(TEST_TIMEOUT) $(if $(RACE),-race) $(TESTFLAGS) ./...
	@if [ -f bench/go.mod ]; then echo "cd bench && $(GO) vet ./..."; cd bench && $(GO) vet ./...; fi

race: ## the concurrent packages under the race detector, without the long forms
	$(GO) test -race -short -timeout $(RACE_TIMEOUT) $(TESTFLAGS) $(RACE_PKGS)

soak: ## the long forms of the crash and outage tests (about an hour)
	SOAK=1 $(GO) test -count=1 -timeout 90m $(TESTFLAGS) ./...

bench: ## the worker beside the bare engine, its own cost, breakers beside others (docs/benchmarks.md)
	cd bench && $(GO) run . $(BENCHFLAGS)

fuzz: ## each fuzz target for FUZZTIME (10s)
	@for pkg in $$($(GO) list ./...); do \
		targets=$$($(GO) test -list '^Fuzz' $$pkg) || { echo "$$targets"; exit 1; }; \
		for target in $$(echo "$$targets" | grep '^Fuzz'); do \
			echo "== $$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg || exit 1; \
		done; \
	done

tools: $(BIN)/.golangci-$(GOLANGCI_VER) $(BIN)/.gofumpt-$(GOFUMPT_VER) $(BIN)/.govulncheck-$(VULN_VER) ## build the pinned tools into .bin

# A stamp carries the version in its name, so that a new version is a new target. A tool given from outside is not built.
$(BIN)/.golangci-$(GOLANGCI_VER):
	@$(call install,$(GOLANGCI),golangci-lint,github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VER))

$(BIN)/.gofumpt-$(GOFUMPT_VER):
	@$(call install,$(GOFUMPT),gofumpt,mvdan.cc/gofumpt@$(GOFUMPT_VER))

$(BIN)/.govulncheck-$(VULN_VER):
	@$(call install,$(VULN),govulncheck,golang.org/x/vuln/cmd/govulncheck@$(VULN_VER))

define install
if [ "$(1)" = "$(BIN)/$(2)" ]; then \
	mkdir -p $(BIN) && echo "building $(3)" && GOBIN=$(BIN) GOFLAGS= $(GO) install $(3) && touch $@; \
elif ! [ -x "$(1)" ]; then \
	echo "$(1) is not an executable file: leave the variable out to have $(2) built" >&2; exit 1; \
fi
endef
