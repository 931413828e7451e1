# Needs Go and, for the tests, a few servers that `make services` starts. Tools are built at pinned versions into .bin.

GO            ?= go
BIN           := $(CURDIR)/.bin
GOLANGCI_VER  := v2.15.0
VULN_VER      := v1.9.0
# Point these at a binary that is already there to save building it: make check GOLANGCI=/usr/local/bin/golangci-lint
GOLANGCI      ?= $(BIN)/golangci-lint
VULN          ?= $(BIN)/govulncheck

# Many tests wait for brokers, leases and delays: more of them at once than there are cores. Packages under the race detector and those without it
# run beside each other.
RACE_AT_ONCE  ?= -p 3 -parallel 16
PLAIN_AT_ONCE ?= -p 2 -parallel 16
# These wait the longest, so they begin first.
LONGEST       ?= queue/rabbitmq/internal/faults queue/sqs/internal/faults internal/testkit/faultlab/faulttest queue/sqs worker queue/rabbitmq queue/outbox webhook/endpoints
TEST_TIMEOUT  ?= 15m
FUZZTIME      ?= 10s
BENCHFLAGS    ?=
TESTFLAGS     ?=
# What failed runs once more, alone; 0 leaves it at the first time.
RERUN         ?= 1

MODULE        := $(shell $(GO) list -m)
# The packages that share memory between goroutines run under the race detector, which needs cgo and a C compiler; RACE=0 leaves it out. In
# directories whose name ends in faulttest, faults or kills, tests judge processes by the clock: they always run without it.
RACE          ?= 1
RACED         ?= ^$(MODULE)/(queue|schedule|pools|idempotency|dlq|app|worker|webhook|internal/(storage|fleet|webhookapi))(/|$$)
UNRACED       ?= (faulttest|faults|kills)$$|/queuetest$$
# SQLite is C in the clothes of Go and guards its memory itself. Watched by the detector it is five times as slow, and takes half a minute to compile.
RACE_FLAGS    ?= -race -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc=-race=false
# What is tested has been vetted by make check.
GOTEST_FLAGS   = -vet=off -ldflags=-s -timeout $(TEST_TIMEOUT)

PACKAGES       = $(shell $(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...)
ALL_PKGS       = $(LONGEST:%=$(MODULE)/%) $(filter-out $(LONGEST:%=$(MODULE)/%),$(PACKAGES))
RACE_PKGS      = $(if $(filter-out 0,$(RACE)),$(shell printf '%s\n' $(ALL_PKGS) | grep -E '$(RACED)' | grep -Ev '$(UNRACED)'))
PLAIN_PKGS     = $(filter-out $(RACE_PKGS),$(ALL_PKGS))

.DEFAULT_GOAL := help
SHELL         := bash
.PHONY: help check fmt lint vet build arch docs vuln test soak bench fuzz services services-stop tools

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

check: lint build arch ## formatting, vet and lint, build, architecture

fmt: $(BIN)/.golangci-$(GOLANGCI_VER) ## format the code
	$(GOLANGCI) fmt

vet: ## go vet alone; lint has it too
	$(GO) vet ./...

# Lint reads what the compiler knows of each package. With the flags of the tests that is compiled once for both.
lint: $(BIN)/.golangci-$(GOLANGCI_VER)
	GOFLAGS="$$GOFLAGS $(if $(filter-out 0,$(RACE)),$(RACE_FLAGS))" $(GOLANGCI) run --allow-parallel-runners ./...

build:
	$(GO) build ./...
	@if [ -f bench/go.mod ]; then echo "cd bench && $(GO) vet ./..."; cd bench && $(GO) vet ./...; fi

arch:
	$(GO) test -count=1 ./internal/testkit/architecture

docs: ## write the tables of docs that come from the code
	$(GO) generate ./internal/program/reference

# Not part of check: it asks the vulnerability database over the network, and check has to work without one.
vuln: $(BIN)/.govulncheck-$(VULN_VER) ## known vulnerabilities in what we call (needs the network)
	$(VULN) ./...

test: services ## every test, once; RACE=0 leaves out the race detector
	@GO='$(GO)' RERUN='$(RERUN)' RACE_FLAGS='$(GOTEST_FLAGS) $(RACE_AT_ONCE) $(RACE_FLAGS) $(TESTFLAGS)' RACE_PKGS='$(RACE_PKGS)' \
		PLAIN_FLAGS='$(GOTEST_FLAGS) $(PLAIN_AT_ONCE) $(TESTFLAGS)' PLAIN_PKGS='$(PLAIN_PKGS)' .ci/tests.sh

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

tools: $(BIN)/.golangci-$(GOLANGCI_VER) $(BIN)/.govulncheck-$(VULN_VER) ## build the pinned tools into .bin

# A stamp carries the version in its name, so that a new version is a new target. A tool given from outside is not built.
$(BIN)/.golangci-$(GOLANGCI_VER):
	@$(call install,$(GOLANGCI),golangci-lint,github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VER))

$(BIN)/.govulncheck-$(VULN_VER):
	@$(call install,$(VULN),govulncheck,golang.org/x/vuln/cmd/govulncheck@$(VULN_VER))

define install
if [ "$(1)" = "$(BIN)/$(2)" ]; then \
	mkdir -p $(BIN) && echo "building $(3)" && GOBIN=$(BIN) GOFLAGS= $(GO) install $(3) && touch $@; \
elif ! [ -x "$(1)" ]; then \
	echo "$(1) is not an executable file: leave the variable out to have $(2) built" >&2; exit 1; \
fi
endef
