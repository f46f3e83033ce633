##@ Testing

BENCH ?= ## sections of `make bench`: check parallel pool pool-quality memory redis postgres keys federation proxy proxy-memory proxy-cpu; empty: all
BESIDE ?= ## other checkouts, apart by commas, whose sidecars `make bench BENCH=proxy-cpu` measures as well, and writes nothing
TORTURE ?= 2m ## how long `make torture` breaks things
UPGRADE_FROM ?= $(or $(shell git describe --tags --abbrev=0 --match 'v*' --exclude '*-*' HEAD^ 2>/dev/null),HEAD~100) ## what `make test-upgrade` upgrades from and goes back to: the release before this commit or, before the first one, a hundred commits ago
ATTACK_GROUPS ?= ## groups of `make attack`: webhook injection objects stream budgets http1 http2; empty: all
ATTACK_TIME ?= ## how long `make attack` plays its rows, such as 10m; empty: each once
TORTURE_SEED ?= ## what decides on the faults of `make torture`; empty: another one each time
CONFORMANCE_EXCHANGES ?= 1000000 ## exchanges of `make conformance` with each target
CONFORMANCE_SEED ?= 1 ## seed of the first of them; each difference is printed with its own
AUDIT_RUNS ?= 10000 ## worlds that `make test-audit` drives
SOAK ?= 30m ## how long `make soak` lasts
FUZZTIME ?= 10s ## budget of each fuzz target of `make fuzz`
SCALE_POLICIES ?= 1000,3000,10000 ## numbers of policies of `make scale`, ascending
SCALE_SIDECARS ?= 1000,2500,5000 ## numbers of sidecars under one policy
SCALE_SHARED ?= 500,1000,2000 ## numbers of sidecars under a hundred policies
SCALE_REST ?= 30s ## how long the controller is watched at rest
SCALE_PAGE ?= docs/capacity.md ## where the figures go; empty: they are printed only
SCALE_MEMORY ?= 512 ## memory of each controller of `make scale`, in MiB
SCALE_STAGES ?= ## stages of `make scale`: policies,sidecars,shared,leases,stores,audit; empty: all
MUTATE ?= ./controllers ./internal/... ./pkg/... ## packages of `make mutate`
MUTATE_OUT ?= $(CACHE)/mutants.txt ## where `make mutate` keeps what it has tried; delete it after a change
TLA2TOOLS ?= ## path of tla2tools.jar for `make tlc`

GINKGO := go run github.com/onsi/ginkgo/v2/ginkgo -v --no-color

# Runs a command where no packet leaves this machine, and fails when one tried to.
SEALED := $(TOOLS)/sealed

# Packages without goroutines of their own, or whose goroutines run one at a time, whose searches the
# race detector would only slow down.
PURE := ./pkg/limiter ./pkg/store/journal ./pkg/policy/revision ./pkg/twotier/account ./internal/controlplane/audit ./internal/controlplane/audit/budgetaudit ./internal/controlplane/audit/meter ./internal/controlplane/audit/poolaudit ./internal/proof/explore ./internal/proof/explore/pools ./internal/proof/explore/federation ./internal/proof/explore/keys ./internal/proof/explore/rates ./internal/proof/explore/leaders ./internal/proof/simulate ./internal/proof/versions

# Packages whose tests use testing/synctest. Before Go 1.27 the race detector crashes where two processors
# run timers of one bubble at the same time (golang/go#78156), so each of these has one processor.
BUBBLES := go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | awk '/testing\/synctest/ {print $$1}'

# Lists of cached objects are not copied. With this client-go panics where code changes one.
test-unit test-fleet test-fleet-more test-upgrade test-autoscaling: export KUBE_CACHE_MUTATION_DETECTOR := true

# On a busy machine an API server takes longer to start than envtest's 20 s.
test-unit: export KUBEBUILDER_CONTROLPLANE_START_TIMEOUT := 90s
test-unit: export KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT := 90s

# Suites that mostly wait run two at a time. Those that want all processors run by themselves.
.PHONY: test
test: test-unit test-fleet ## Run everything a change must pass that needs no cluster
	@$(MAKE) --no-print-directory -j 2 --output-sync=line test-conformance test-install test-demo
	@$(MAKE) --no-print-directory -j 2 --output-sync=line test-torture test-scale test-attack

.PHONY: test-unit
test-unit: deps assets ## Run all packages, under the race detector where goroutines are, with real servers
	KUBEBUILDER_ASSETS=$(ASSETS) go test -timeout 15m $(PURE)
	go test -timeout 15m -run Fleet ./internal/controlplane/coordinator
	KUBEBUILDER_ASSETS=$(ASSETS) go test -race -cpu 1 -p 3 -timeout 15m $$($(BUBBLES))
	KUBEBUILDER_ASSETS=$(ASSETS) go test -race -timeout 15m $$(go list ./... | grep -vxF "$$(go list $(PURE); $(BUBBLES))")

.PHONY: test-conformance
test-conformance: deps ## Hold sidecars to suites for HTTP/1.1, HTTP/2, WebSocket, gRPC and curl beside haproxy, and for Envoy's rate limit service (about 4 minutes)
	@hack/deps.sh haproxy curl python3 npm
	@cd test/conformance/testdata/ws && npm ci --ignore-scripts --loglevel=error >/dev/null
	go -C test/conformance test -count=1 -timeout 10m ./...

.PHONY: conformance
conformance: deps ## Play exchanges drawn from seeds with an app directly and through sidecars, and list what differs (hours for a million)
	@hack/deps.sh haproxy
	CONFORMANCE_EXCHANGES=$(CONFORMANCE_EXCHANGES) CONFORMANCE_SEED=$(CONFORMANCE_SEED) go -C test/conformance test -count=1 -timeout 24h -run TestExchanges .

.PHONY: test-browser
test-browser: ## Open the page of `kubectl weir dashboard` in Chromium, and draw docs/dashboard.png
	@hack/deps.sh chromium
	DASHBOARD_PICTURE=$(CURDIR)/docs/dashboard.png go test -count=1 -tags browser ./internal/plugin/dashboard

.PHONY: soak
soak: ## Put a sidecar of 128 MiB under mixed load for SOAK, with 5,000 connections, and compare each answer with what the app gave
	SOAK=$(SOAK) go test -count=1 -v -timeout 24h -run TestMixedLoadGetsRightAnswers ./cmd/sidecar

.PHONY: test-fleet
test-fleet: deps assets build demo-programs fleet-modules sealed ## Run the whole system as processes on this machine and prove its promises
	@hack/deps.sh prometheus
	KUBEBUILDER_ASSETS=$(ASSETS) $(SEALED) $(GINKGO) --procs 2 --timeout 25m --label-filter '!more && !upgrade && !autoscaling' --tags fleet ./test/fleet

.PHONY: test-fleet-more
test-fleet-more: deps assets build demo-programs fleet-modules sealed ## The same with the specs that have a counterpart in `make e2e` or `make torture` (about 15 minutes)
	@hack/deps.sh prometheus
	KUBEBUILDER_ASSETS=$(ASSETS) $(SEALED) $(GINKGO) --procs 2 --timeout 30m --label-filter '!upgrade && !autoscaling' --tags fleet ./test/fleet

.PHONY: test-upgrade
test-upgrade: deps assets build demo-programs fleet-modules sealed ## Replace UPGRADE_FROM by this checkout under load, and go back, with sidecars of both versions: every window is judged (about 3 minutes)
	@git rev-parse --quiet --verify '$(strip $(UPGRADE_FROM))^{commit}' >/dev/null || { \
		echo "test-upgrade: this clone has no commit $(strip $(UPGRADE_FROM)): get it by git fetch --tags --unshallow, or name another one, such as UPGRADE_FROM=v0.1.0" >&2; exit 1; }
	@rm -rf $(CACHE)/upgrade && mkdir -p $(CACHE)/upgrade
	@git archive $(UPGRADE_FROM) | tar -x -C $(CACHE)/upgrade
	@cd $(CACHE)/upgrade && mkdir -p bin && CGO_ENABLED=0 go build -trimpath -buildvcs=false -tags grpcnotrace -o bin/ ./cmd/controller ./cmd/sidecar
	KUBEBUILDER_ASSETS=$(ASSETS) UPGRADE_CHECKOUT=$(CACHE)/upgrade $(SEALED) $(GINKGO) --timeout 15m --label-filter upgrade --tags fleet ./test/fleet

.PHONY: test-autoscaling
test-autoscaling: deps assets build demo-programs fleet-modules sealed $(TOOLS)/.addon-prometheus-adapter $(TOOLS)/.addon-keda ## Scale an app by config/autoscaling, with prometheus-adapter and then with KEDA, Prometheus and the controllers of Kubernetes (about 4 minutes)
	@hack/deps.sh prometheus
	KUBEBUILDER_ASSETS=$(ASSETS) AUTOSCALERS=$(TOOLS) $(SEALED) $(GINKGO) --timeout 15m --label-filter autoscaling --tags fleet ./test/fleet

.PHONY: test-demo
test-demo: deps assets build demo-programs sealed ## Run each scene of the demo for some seconds, and prove that nothing of it leaves this machine
	@for scene in policy pool; do \
		KUBEBUILDER_ASSETS=$(ASSETS) DEMO_SCENE=$$scene DEMO_DURATION=10s $(SEALED) bin/demo; \
	done
	@KUBEBUILDER_ASSETS=$(ASSETS) DEMO_SCENE=budget DEMO_WINDOWS=2 DEMO_DURATION=90s $(SEALED) bin/demo

.PHONY: test-attack
test-attack: ## Run those attacks of `make attack` that take no longer than a moment (about a minute)
	@ATTACK_SHORT=1 $(MAKE) attack

.PHONY: attack
attack: deps assets build demo-programs sealed ## Attack webhooks, objects, the fleet's port, a hub and sidecars as processes with the memory of their containers, beside a tenant that must not notice (about 5 minutes)
	@go build -o bin/attack ./test/attack
	@KUBEBUILDER_ASSETS=$(ASSETS) ATTACK_GROUPS="$(ATTACK_GROUPS)" ATTACK_TIME=$(ATTACK_TIME) $(SEALED) bin/attack

.PHONY: test-torture
test-torture: ## Run `make torture` for a minute on one cluster and for another on two, with the same faults each time
	@for seed in $(or $(TORTURE_SEED),1 2); do $(MAKE) torture TORTURE=1m TORTURE_SEED=$$seed || exit; done

.PHONY: torture
torture: deps assets build demo-programs sealed ## Kill, pause, cut off and misguide everything under load for TORTURE, and judge every window by what reached the applications
	@go build -o bin/torture ./test/torture
	@KUBEBUILDER_ASSETS=$(ASSETS) TORTURE=$(TORTURE) TORTURE_SEED=$(TORTURE_SEED) $(SEALED) bin/torture

.PHONY: scale
scale: deps assets build sealed ## Measure what the controller costs at size (about 40 minutes); writes docs/capacity.md
	@go build -o bin/scale ./test/scale
	@KUBEBUILDER_ASSETS=$(ASSETS) SCALE_POLICIES=$(SCALE_POLICIES) SCALE_SIDECARS=$(SCALE_SIDECARS) SCALE_SHARED=$(SCALE_SHARED) \
		SCALE_MEMORY=$(SCALE_MEMORY) SCALE_STAGES=$(SCALE_STAGES) SCALE_REST=$(SCALE_REST) SCALE_PAGE=$(SCALE_PAGE) $(SEALED) bin/scale

.PHONY: test-scale
test-scale: ## Run the part of `make scale` that ends leaders under load, with 200 sidecars: every window is judged (about 3 minutes)
	@$(MAKE) scale SCALE_STAGES=sidecars SCALE_SIDECARS=50,200 SCALE_REST=5s SCALE_PAGE=

.PHONY: scale-short
scale-short: ## All of `make scale` at small sizes, which prints only (about 4 minutes)
	@$(MAKE) scale SCALE_POLICIES=100,500 SCALE_SIDECARS=50,200 SCALE_SHARED=25,50 SCALE_REST=5s SCALE_PAGE=

.PHONY: sealed
sealed:
	@go build -o $(SEALED) ./hack/sealed

.PHONY: fleet-modules
fleet-modules:
	@go list -deps -test -tags fleet ./test/fleet github.com/onsi/ginkgo/v2/ginkgo >/dev/null

.PHONY: e2e
e2e: e2e-ready ## Create a kind cluster, install Weir, and prove its promises with real pods (E2E_KEEP=1 leaves the cluster of a spec that failed)
	IMAGE_VERSION=$(VERSION) $(GINKGO) --procs 2 --timeout 45m --flake-attempts 2 --label-filter '!addons' --tags e2e ./test/e2e

.PHONY: e2e-addons
e2e-addons: e2e-ready $(TOOLS)/.addon-prometheus-kubernetes $(TOOLS)/.addon-prometheus-adapter $(TOOLS)/.addon-kube-router ## The same on three nodes with NetworkPolicies enforced, a Prometheus that scrapes, and a HorizontalPodAutoscaler that scales (about 10 minutes, and 10 more the first time)
	@hack/deps.sh ipset iptables
	IMAGE_VERSION=$(VERSION) $(GINKGO) --timeout 30m --flake-attempts 2 --label-filter addons --tags e2e ./test/e2e

.PHONY: e2e-ready
e2e-ready: deps assets $(TOOLS)/.helm install-manifest
	@$(MAKE) images ARCHITECTURES=$$(go env GOARCH)
	@$(PACK) -architectures $$(go env GOARCH) -name weir-test-app -package ./test/app
	@go build -o bin/kubectl-weir ./cmd/kubectl-weir

.PHONY: test-audit
test-audit: ## Set what the audit says beside the truth in AUDIT_RUNS simulated fleets (about 15 minutes for 10000)
	WEIR_AUDIT_RUNS=$(AUDIT_RUNS) go test -timeout 60m -run TestFiguresNeverLie -v ./internal/controlplane/audit | grep -v -e '^=== ' -e '--- PASS'

.PHONY: test-search
test-search: ## Visit every state of the models of pools, where `make test` ends after 100,000 of a model (about 2 minutes)
	WEIR_EXPLORE_WHOLE=1 go test -count=1 -timeout 30m -run TestPromisesHoldInEveryHistory -v ./internal/proof/explore/pools | grep -v -e '^=== ' -e '--- PASS'

.PHONY: test-seeds
test-seeds: assets ## Play all random worlds of stores and of the engine under the race detector, where `make test` plays a quarter (about 10 minutes)
	WEIR_ALL_SEEDS=1 go test -race -count=1 -timeout 30m ./pkg/store/memory ./pkg/store/postgres ./pkg/store/redis ./pkg/twotier

.PHONY: fuzz
fuzz: ## Fuzz every target for FUZZTIME each
	@hack/fuzz.sh $(FUZZTIME)

.PHONY: mutate
mutate: deps assets ## Leave out each copy of a field in the packages MUTATE, and list those that no test misses (minutes to an hour each)
	KUBEBUILDER_ASSETS=$(ASSETS) go run ./hack/mutate -o $(MUTATE_OUT) $(MUTATE)

.PHONY: bench
bench: deps assets bench-deps ## Set the cost of a decision beside other limiters, in memory and over stores; writes docs/benchmarks.md
	KUBEBUILDER_ASSETS=$(ASSETS) go -C test/bench run . $(if $(BESIDE),-beside $(BESIDE),-o $(CURDIR)/docs/benchmarks.md) $(BENCH)

.PHONY: bench-deps
bench-deps:
	@hack/deps.sh haproxy nginx

.PHONY: tlc
tlc: ## Check the TLA+ modules in spec/ with TLC, given TLA2TOOLS
	@hack/tlc.sh $(TLA2TOOLS)
