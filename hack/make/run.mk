##@ Running it

export DEMO_DURATION ?= ## end `make demo` by itself, for example after 60s; empty: until Ctrl-C
export DEMO_SCENE ?= policy ## what the demo shows: policy (a rate limit), pool (a concurrency limit in front of a slow backend) or budget (one limit over two clusters)
export DEMO_WINDOWS ?= ## end the budget scene after this number of whole windows, and fail when one broke the limit; empty: judge none
export DEMO_STORE ?= Controller ## where the demo counts at first: Controller, Redis or Postgres

.PHONY: demo
demo: assets build demo-programs ## Boot a cluster, controller, sidecars, an app and load on this machine, and watch
	@KUBEBUILDER_ASSETS=$(ASSETS) exec bin/demo

.PHONY: demo-programs
demo-programs:
	@go build -o bin/demo ./hack/demo
	@go build -o bin/demo-app ./test/app

.PHONY: simulate
simulate: ## Simulate fleets in virtual time, and write docs/simulation.md with its plot
	@go run ./hack/simulate

.PHONY: ways
ways: ## Count the files and functions that a request runs through in a sidecar, with credits in hand and without
	@go build -cover -covermode=atomic -coverpkg=./internal/...,./pkg/...,./hack/ways -o bin/ways ./hack/ways
	@GOCOVERDIR=$$(mktemp -d) bin/ways

.PHONY: eval-federation
eval-federation: deps assets build ## Measure three regions on one budget over every coordinator (about 8 minutes); writes docs/federation-evaluation.md
	@go build -o bin/evalfederation ./hack/evalfederation
	@KUBEBUILDER_ASSETS=$(ASSETS) bin/evalfederation

.PHONY: eval-values
eval-values: deps assets build ## Measure budgets with a key over every coordinator (about a minute), and while something fails; writes the tables of values
	@go build -o bin/evalfederation ./hack/evalfederation
	@KUBEBUILDER_ASSETS=$(ASSETS) bin/evalfederation values
	@go test ./pkg/federation/keyed -run TestEveryKeyStaysWithinItsLimitWhateverFails -update
