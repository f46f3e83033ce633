# Every target that a person or CI calls is listed by `make help`; the recipes
# are in hack/make, one file a subject.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Everything that is built or downloaded stays out of the tree, here.
CACHE := $(CURDIR)/.cache
TOOLS := $(CACHE)/bin
export PATH := $(TOOLS):$(PATH)

include hack/make/setup.mk
include hack/make/code.mk
include hack/make/test.mk
include hack/make/run.mk
include hack/make/install.mk
include hack/make/kind.mk
include hack/make/site.mk

.PHONY: help
help: ## Show this list
	@awk -f hack/make/help.awk $(MAKEFILE_LIST)

.PHONY: clean
clean: ## Remove what the other targets wrote into the checkout
	rm -rf bin dist .demo $(CACHE)
