##@ Installing it in a cluster

ARCHITECTURES ?= amd64,arm64 ## architectures of `make images`, comma-separated

IMAGES := $(CURDIR)/dist/images
PACK := go -C hack/image run . -source $(CURDIR) -out $(IMAGES) -version $(VERSION)

.PHONY: images
images: ## Build the container images of both programs into dist/images, for each of ARCHITECTURES
	@$(PACK) -architectures $(ARCHITECTURES) -name weir-sidecar -package ./cmd/sidecar -tags grpcnotrace
	@$(PACK) -architectures $(ARCHITECTURES) -name weir-controller -package ./cmd/controller -tags grpcnotrace

.PHONY: install-manifest
install-manifest: assets ## Write dist/install.yaml, all that config/default installs, with images of VERSION
	@KUBECTL=$(ASSETS)/kubectl hack/install-manifest.sh dist/install.yaml weir-controller=weir-controller:$(VERSION) weir-sidecar=weir-sidecar:$(VERSION)

.PHONY: chart
chart: chart-files $(TOOLS)/.helm ## Pack charts/weir into dist/, with images of VERSION
	@helm package charts/weir --version $(CHART_VERSION) --app-version $(VERSION) --destination dist

# Helm takes semantic versions only. A clone without tags has a VERSION such as 0123456, which is
# not one behind a hyphen either: a number there begins with no zero.
CHART_VERSION = $(if $(filter v%,$(VERSION)),$(VERSION:v%=%),0.0.0-g$(VERSION))

# The chart holds copies, because Helm reads nothing outside of it.
.PHONY: chart-files
chart-files: assets ## Copy the CRDs, and what config/monitoring renders, into charts/weir
	@rm -rf charts/weir/files && mkdir -p charts/weir/files/crds charts/weir/files/monitoring
	@cp config/crd/bases/*.yaml charts/weir/files/crds
	@[ ! -d config/monitoring ] || $(ASSETS)/kubectl kustomize config/monitoring -o charts/weir/files/monitoring

PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 ## of `make plugins`

.PHONY: plugins
plugins: ## Build kubectl-weir into dist/plugins, for each of PLATFORMS
	@rm -rf dist/plugins && mkdir -p dist/plugins
	@for platform in $(PLATFORMS); do os=$${platform%/*} architecture=$${platform#*/}; suffix=; [ $$os != windows ] || suffix=.exe; \
		echo "building kubectl-weir for $$platform"; \
		CGO_ENABLED=0 GOOS=$$os GOARCH=$$architecture go build -trimpath -buildvcs=false -ldflags "-s -w -X github.com/weir-dev/weir/internal/version.built=$(VERSION)" \
			-o dist/plugins/kubectl-weir_$${os}_$${architecture}$$suffix ./cmd/kubectl-weir; done
	@go -C hack/image run . licences -source $(CURDIR) $(CURDIR)/dist/plugins/*

REGISTRY ?= registry.example.com/weir ## where `make release` publishes images and chart: a registry, and a path in it

.PHONY: release
release: assets chart-files $(TOOLS)/.helm ## Write all that a release of VERSION publishes into dist/release; RELEASE_FLAGS=-push pushes images and chart to REGISTRY
	@hack/tagged.sh $(VERSION)
	@$(MAKE) images plugins
	@KUBECTL=$(ASSETS)/kubectl go -C hack/image run ./release -version $(VERSION) -registry $(REGISTRY) -images $(IMAGES) $(RELEASE_FLAGS)

.PHONY: test-install
test-install: assets $(TOOLS)/.helm ## Check that the chart installs what config/ does, and that images of this machine are reproducible
	KUBEBUILDER_ASSETS=$(ASSETS) go test -tags helm ./charts/...
	KUBECTL=$(ASSETS)/kubectl go -C hack/image test -short -timeout 20m ./...

.PHONY: test-images
test-images: ## Check that images of every architecture are reproducible (some minutes the first time)
	go -C hack/image test -timeout 40m -v ./...
