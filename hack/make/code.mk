##@ Writing code

PROGRAMS := $(notdir $(wildcard cmd/*))
VULN_DB ?= ## database of `make vulncheck`: a URL, or file:// and a directory; empty: that of the Go project
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev) ## version of what is built, such as v0.1.0-rc.1; by default what `git describe` prints
VERSION := $(strip $(VERSION))

.PHONY: build
build: ## Build the programs into bin/
	@mkdir -p bin
	@for program in $(PROGRAMS); do CGO_ENABLED=0 go build -trimpath -tags grpcnotrace -o bin/$$program ./cmd/$$program; done

.PHONY: generate
generate: $(TOOLS)/.generators ## Generate deep copies, CRDs, RBAC, protobuf code, dashboards and docs/reference
	controller-gen object paths=./api/...
	controller-gen crd paths=./api/... output:crd:dir=config/crd/bases
	buf generate --path internal/fleetpb --path internal/federationpb
	go run ./hack/reference
	go run ./hack/dashboards
	@$(MAKE) chart-files

.PHONY: fmt
fmt: $(TOOLS)/.linter ## Format the Go code
	golangci-lint fmt

# The packages below pkg are a library, so others may call what no program here does.
.PHONY: lint
lint: $(TOOLS)/.linter $(TOOLS)/.generators ## Run the linters of .golangci.yml, find functions that nothing calls, and check the wording
	golangci-lint config verify
	golangci-lint run
	@go run ./hack/words
	@dead=$$(deadcode -filter '/weir/(api|cmd|controllers|internal)/' ./cmd/...) && [ -z "$$dead" ] || \
		{ printf '%s\n' "$$dead" "no program calls these: remove them" >&2; exit 1; }

# Not part of `make lint`: what it finds changes with the database, and it needs the network.
.PHONY: vulncheck
vulncheck: $(TOOLS)/.vulncheck ## Look for known vulnerabilities in what the programs call, where a database can be had
	govulncheck $(if $(VULN_DB),-db $(VULN_DB)) -tags grpcnotrace ./cmd/...
	govulncheck $(if $(VULN_DB),-db $(VULN_DB)) -C hack/image ./...

# Generated files are part of the tree, so generating again must change nothing.
.PHONY: verify
verify: ## Check that generated files are current, modules are tidy and the protocol is sound
	@hack/verify.sh
