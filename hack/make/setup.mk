##@ Setting up (the other targets call these when they need them)

.PHONY: deps
deps: ## Install the servers tests run against (redis-server, postgresql), or say how
	@hack/deps.sh

# Tests and the demo find the programs here, whatever they were taken from.
ASSETS := $(CACHE)/assets

.PHONY: assets
assets: ## Provide etcd and the programs of Kubernetes: given, cached, or built once (5 to 8 minutes on 2 cores)
	@hack/kube/assets.sh $(ASSETS)

.PHONY: tools
tools: $(TOOLS)/.generators $(TOOLS)/.linter $(TOOLS)/.helm ## Build the pinned generators, linters and Helm into .cache/bin

$(TOOLS)/.generators: hack/tools/go.mod hack/tools/go.sum
	@echo "building the code generators into .cache/bin (about 2 minutes the first time)"
	@GOBIN=$(TOOLS) go -C hack/tools install tool
	@touch $@

$(TOOLS)/.linter: hack/tools/golangci/go.mod hack/tools/golangci/go.sum
	@echo "building golangci-lint into .cache/bin (about 4 minutes the first time)"
	@GOBIN=$(TOOLS) go -C hack/tools/golangci install tool
	@touch $@

$(TOOLS)/.helm: hack/tools/helm/go.mod hack/tools/helm/go.sum
	@echo "building helm into .cache/bin (about 4 minutes the first time)"
	@GOBIN=$(TOOLS) go -C hack/tools/helm install tool
	@touch $@

$(TOOLS)/.vulncheck: hack/tools/vulncheck/go.mod hack/tools/vulncheck/go.sum
	@GOBIN=$(TOOLS) go -C hack/tools/vulncheck install tool
	@touch $@

# Programs that run beside Weir in tests: $(TOOLS)/.addon-PROGRAM.
$(TOOLS)/.addon-%: hack/addons.sh
	@hack/addons.sh $(TOOLS) $*
	@touch $@
