##@ A real cluster

export KIND_NAME ?= weir ## the cluster that `make kind` creates
export KIND_WORKERS ?= 2 ## its nodes beside the control plane's

.PHONY: kind
kind: ## Create a kind cluster, with Docker and the node image provided (the first time about 10 minutes, then one)
	@go run ./hack/kind up -name $(KIND_NAME) -workers $(KIND_WORKERS)

.PHONY: test-kind
test-kind: ## Prove that pods of several nodes and of two clusters reach each other (some minutes)
	go test -v -tags e2e -count 1 -timeout 30m ./hack/kind/cluster

.PHONY: kind-down
kind-down: ## Delete that cluster
	@go run ./hack/kind down -name $(KIND_NAME)
