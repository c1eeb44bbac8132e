# Every target is one line; the stages of a test run are listed in test/run/stages.go.
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  = -s -w -X main.version=$(VERSION)

.DEFAULT_GOAL := help
.PHONY: help build test check lint fuzz soak docs bench peers image clean

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## bin/streamproxy, static, with its version inside
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/streamproxy ./cmd/streamproxy

test: ## everything: installs what tests need, starts real servers, under 20 minutes
	$(GO) run ./test/run

check: ## the quick part, under 3 minutes: lint, build, unit tests with the race detector
	$(GO) run ./test/run -quick

lint: ## formatting, vet and the linters of .golangci.yml
	$(GO) run ./test/run -only lint

fuzz: ## every fuzz target in turn, FUZZTIME each (100000x: as many runs; or 10m)
	$(GO) run ./test/run -only fuzz -fuzztime $(or $(FUZZTIME),100000x)

soak: ## ten minutes of 500 clients with a fault every few seconds; SEED=n repeats a schedule
	$(GO) test -tags faults ./test/faults -run 'TestSoak$$' -v -timeout 20m -args -time 10m -seed $(or $(SEED),0)

docs: ## write the generated pages under docs/
	$(GO) run ./cmd/streamproxy docs --out docs

bench: build ## measure against direct connections and the peers on PATH; JSON under bench/results
	$(GO) run ./bench throughput
	$(GO) run ./bench idle
	$(GO) run ./bench streams
	$(GO) run ./bench report

peers: ## install the peers that the benchmarks compare with
	bash test/install/peers.sh

image: ## the container image
	docker build --build-arg VERSION=$(VERSION) -t streamproxy:$(VERSION) .

clean: ## remove what was built; keeps downloads under .cache
	rm -rf bin dist
