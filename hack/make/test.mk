##@ Testing

BENCH ?= ## sections of `make bench`: check parallel pool pool-quality memory redis postgres federation proxy; empty: all
FUZZTIME ?= 10s ## budget of each fuzz target of `make fuzz`
TLA2TOOLS ?= ## path of tla2tools.jar for `make tlc`

GINKGO := go run github.com/onsi/ginkgo/v2/ginkgo -v --no-color

# Packages without goroutines, whose searches the race detector would only slow down.
PURE := ./pkg/limiter ./internal/explore ./internal/explore/pools ./internal/explore/federation

.PHONY: test
test: test-unit test-install test-fleet ## Run everything a change must pass that needs no cluster

.PHONY: test-unit
test-unit: deps assets ## Run all packages, under the race detector where goroutines are, with real servers
	go test -timeout 15m $(PURE)
	KUBEBUILDER_ASSETS=$(ASSETS) go test -race -timeout 15m $$(go list ./... | grep -vxF "$$(go list $(PURE))")

.PHONY: test-fleet
test-fleet: deps assets build demo-programs ## Run the whole system as processes on this machine and prove its promises
	KUBEBUILDER_ASSETS=$(ASSETS) $(GINKGO) --procs 2 --timeout 25m --label-filter '!more' --tags fleet ./test/fleet

.PHONY: test-fleet-more
test-fleet-more: deps assets build demo-programs ## The same with the specs whose like `make e2e` shows (about 10 minutes)
	KUBEBUILDER_ASSETS=$(ASSETS) $(GINKGO) --procs 2 --timeout 30m --tags fleet ./test/fleet

.PHONY: e2e
e2e: e2e-ready ## Create a kind cluster, install Weir, and prove its promises with real pods (E2E_KEEP=1 leaves the cluster of a spec that failed)
	IMAGE_VERSION=$(VERSION) $(GINKGO) --procs 2 --timeout 45m --flake-attempts 2 --tags e2e ./test/e2e

.PHONY: e2e-ready
e2e-ready: deps assets $(TOOLS)/.helm install-manifest
	@$(MAKE) images ARCHITECTURES=$$(go env GOARCH)
	@$(PACK) -architectures $$(go env GOARCH) -name weir-test-app -package ./test/e2e/app

.PHONY: fuzz
fuzz: ## Fuzz every target for FUZZTIME each
	@hack/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: deps assets bench-deps ## Set the cost of a decision beside other limiters, in memory and over stores; writes docs/benchmarks.md
	KUBEBUILDER_ASSETS=$(ASSETS) go -C test/bench run . -o $(CURDIR)/docs/benchmarks.md $(BENCH)

.PHONY: bench-deps
bench-deps:
	@hack/deps.sh haproxy

.PHONY: tlc
tlc: ## Check the TLA+ modules in spec/ with TLC, given TLA2TOOLS
	@hack/tlc.sh $(TLA2TOOLS)
