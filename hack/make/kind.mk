##@ A real cluster

export KIND_NAME ?= weir ## the cluster that `make kind` creates
export KIND_WORKERS ?= 2 ## its nodes beside the control plane's

.PHONY: kind
kind: ## Create a kind cluster, with Docker and the node image provided (the first time about 10 minutes, then one)
	@go run ./hack/kind up -name $(KIND_NAME) -workers $(KIND_WORKERS)

.PHONY: kind-install
kind-install: $(TOOLS)/.helm ## Build Weir's images and a sample app's, load them into that cluster, and install Weir there with Helm
	@$(MAKE) images ARCHITECTURES=$$(go env GOARCH)
	@$(PACK) -architectures $$(go env GOARCH) -name weir-sample-app -package ./hack/sample -version latest
	@go run ./hack/kind load -name $(KIND_NAME) $(IMAGES)/weir-controller.tar $(IMAGES)/weir-sidecar.tar $(IMAGES)/weir-sample-app.tar
	@KUBECONFIG=$$(go run ./hack/kind kubeconfig -name $(KIND_NAME)) helm upgrade weir charts/weir --install \
		--namespace weir-system --create-namespace --wait \
		--set-string images.controller.tag=$(VERSION),images.sidecar.tag=$(VERSION)

.PHONY: test-kind
test-kind: ## Prove that pods of several nodes and of two clusters reach each other (some minutes)
	go test -v -tags e2e -count 1 -timeout 30m ./hack/kind/cluster

.PHONY: kind-down
kind-down: ## Delete that cluster
	@go run ./hack/kind down -name $(KIND_NAME)
