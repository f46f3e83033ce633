##@ Installing it in a cluster

IMAGES := $(CURDIR)/dist/images
PACK := go -C hack/image run . -source $(CURDIR) -out $(IMAGES) -version $(VERSION)
ARCHITECTURES ?= amd64,arm64 ## architectures of `make images`, comma-separated

.PHONY: images
images: ## Build the container images of both programs into dist/images, for each of ARCHITECTURES
	@$(PACK) -architectures $(ARCHITECTURES) -name weir-sidecar -package ./cmd/sidecar -tags grpcnotrace
	@$(PACK) -architectures $(ARCHITECTURES) -name weir-controller -package ./cmd/controller -tags grpcnotrace
