# Needs Go and, for the tests, a few servers that `make services` starts. Tools are built at pinned versions into .bin.

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
# Many tests wait for brokers, leases and delays: more of them at once than there are cores.
AT_ONCE       ?= -p 4 -parallel 12
# These wait the longest, so they begin first.
LONGEST       ?= ./queue/sqs ./queue/rabbitmq/internal/faults ./queue/rabbitmq ./worker
TEST_TIMEOUT  ?= 15m
RACE_TIMEOUT  ?= 15m
FUZZTIME      ?= 10s
BENCHFLAGS    ?=
TESTFLAGS     ?=

# What takes minutes of waiting or of virtual time, or judges processes of its own by what the clock says, runs in make test only; RACE=1 make test has it
# under the race detector as well.
RACE_SKIP     ?= ^TestFaults|^TestDeadLetters$$|^TestKill|^TestExactlyOnce|^TestPostgresAway|^TestDelayAtAndDeadline|^TestLongOutage|^TestHugeDelays
RACE_AT_ONCE  ?= -p 3 -parallel 12

# What failed runs once more, one package at a time: tests that kill processes and cut networks share a machine with all the others. What passes
# only then is named at the end, and is a bug to be mended. RERUN=0 leaves it at the first time.
RERUN         ?= 1
define tests
	log=$$(mktemp); trap 'rm -f "$$log"' EXIT; set -o pipefail; echo "$(GO) test $(1) $(2)"; \
	$(GO) test $(1) $(2) 2>&1 | tee "$$log" && exit 0; \
	failed=$$(sed -n 's/^FAIL[[:space:]]\{1,\}\([^[:space:]]*\/[^[:space:]]*\).*/\1/p' "$$log" | sort -u); \
	if [ "$(RERUN)" = 0 ] || [ -z "$$failed" ]; then exit 1; fi; \
	echo; echo "=== once more:" $$failed; \
	$(GO) test $(1) -p 1 $$failed || exit 1; \
	echo "=== FLAKY, failed and then passed (mend it):" $$failed; grep -E '^[[:space:]]*--- FAIL|^panic:|DATA RACE' "$$log" | sort -u
endef

# The packages that share memory between goroutines.
RACE_PKGS     = $(shell $(GO) list ./... | grep -E '/caisson/(queue|schedule|pools|idempotency|dlq|worker|webhook|internal/(fleet|storage))(/|$$)' | grep -v queuetest)

.DEFAULT_GOAL := help
SHELL         := bash
.PHONY: help check fmt lint vet build arch docs vuln test race soak bench fuzz services services-stop tools

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

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
	$(GO) test -count=1 ./internal/testkit/architecture

docs: ## write the tables of docs that come from the code
	$(GO) generate ./internal/program/reference

# Not part of check: it asks the vulnerability database over the network, and check has to work without one.
vuln: $(BIN)/.govulncheck-$(VULN_VER) ## known vulnerabilities in what we call (needs the network)
	$(VULN) ./...

test: services ## every test; RACE=1 adds the race detector
	@$(call tests,-timeout $(TEST_TIMEOUT) $(AT_ONCE) $(if $(RACE),-race) $(TESTFLAGS),$(LONGEST) ./internal/testkit/testserver ./...)
	@if [ -f bench/go.mod ]; then echo "cd bench && $(GO) vet ./..."; cd bench && $(GO) vet ./...; fi

race: services ## the concurrent packages under the race detector, without the long forms and the crash tests
	@$(call tests,-race -short -skip '$(RACE_SKIP)' -timeout $(RACE_TIMEOUT) $(RACE_AT_ONCE) $(TESTFLAGS),$(LONGEST) $(RACE_PKGS))

soak: services ## the long forms of the crash and outage tests (about an hour)
	SOAK=1 $(GO) test -count=1 -timeout 90m $(TESTFLAGS) ./...

bench: services ## the worker beside bare loops on each broker, its own cost, breakers beside others (docs/benchmarks.md)
	cd bench && $(GO) run . $(BENCHFLAGS)

fuzz: ## each fuzz target for FUZZTIME (10s)
	@for pkg in $$($(GO) list ./...); do \
		targets=$$($(GO) test -list '^Fuzz' $$pkg) || { echo "$$targets"; exit 1; }; \
		for target in $$(echo "$$targets" | grep '^Fuzz'); do \
			echo "== $$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg || exit 1; \
		done; \
	done

services: ## use or start RabbitMQ, PostgreSQL and an SQS server for the tests (CONTRIBUTING.md)
	@deploy/services/services.sh start

services-stop: ## end the servers that make services started
	@deploy/services/services.sh stop

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
