##@ A real cluster

export KIND_NAME ?= weir ## the cluster that `make kind` creates
export KIND_WORKERS ?= 2 ## its nodes beside the control plane's

.PHONY: kind
kind: ## Create a kind cluster, with Docker and the node image provided (the first time about 10 minutes, then one)
	@go run ./hack/kind up -name $(KIND_NAME) -workers $(KIND_WORKERS)

.PHONY: kind-down
kind-down: ## Delete that cluster
	@go run ./hack/kind down -name $(KIND_NAME)
