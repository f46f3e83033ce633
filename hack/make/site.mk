##@ The site of the documentation

SITE_BASE ?= / ## path that the site of `make site` is served below, such as /v0.1/ beside other versions

SITE := $(CACHE)/site

.PHONY: site
site: $(SITE)/node_modules ## Render the documentation of VERSION into dist/site, with search, and check both
	@rm -rf $(SITE)/pages dist/site
	@go run ./hack/site stage -out $(SITE)/pages -ref $(SITE_REF)
	@cp hack/site/config.mjs $(SITE)/pages/.vitepress/config.mjs
	@cd $(SITE) && SITE_VERSION=$(VERSION) SITE_BASE=$(SITE_BASE) SITE_OUT=$(CURDIR)/dist/site node_modules/.bin/vitepress build pages
	@go run ./hack/site check -dir dist/site -base $(SITE_BASE)

# Pages link to the sources of a release by its tag, and else to those of main: a candidate needs
# no tag, and what `git describe` prints of other commits is none.
SITE_REF = $(if $(filter v%,$(VERSION)),$(if $(findstring -,$(VERSION)),main,$(VERSION)),main)

$(SITE)/node_modules: hack/site/package.json hack/site/package-lock.json
	@command -v npm >/dev/null || hack/deps.sh npm
	@mkdir -p $(SITE)
	@cp $^ $(SITE)/
	@cd $(SITE) && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@
