# Slipway. `make help` lists the targets.
SHELL := bash
.DEFAULT_GOAL := help

KUBERNETES_VERSION := $(shell sed -nE 's|^\tk8s.io/kubernetes (v[0-9.]+).*|\1|p' go.mod)
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo v0.0.0)
BIN ?= bin/slipway
DIST ?= dist
PGO ?= auto
TRIM ?= -trimpath
DATA_DIR ?= $(CURDIR)/dist/demo
export CGO_ENABLED := 0

kube := k8s.io/component-base/version
minor = $(word 2,$(subst ., ,$(KUBERNETES_VERSION)))
ldflags := -s -w -X $(kube).gitVersion=$(KUBERNETES_VERSION) -X $(kube).gitMajor=1 -X $(kube).gitMinor=$(minor) \
	-X k8s.io/client-go/pkg/version.gitVersion=$(KUBERNETES_VERSION) \
	-X github.com/slipwayhq/slipway/internal/buildinfo.version=$(VERSION)

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

.PHONY: prerequisites
prerequisites: ## install what is missing on this machine and start Docker
	@hack/prerequisites.sh

.PHONY: browser
browser:
	@hack/prerequisites.sh --browser

.PHONY: generate
generate: crds ## generate CRDs, deepcopy functions and documents
	@go generate ./internal/cli
	@go test -vet=off -pgo=off -run TestConditionOwners . -update >/dev/null

.PHONY: crds
crds:
	@go run -pgo=off ./hack/crds
	@go run -pgo=off ./hack/openapi

.PHONY: build
build: ## build bin/slipway
	@go build $(TRIM) -pgo=$(PGO) -ldflags '$(ldflags)' -o '$(BIN)' ./cmd/slipway

IMAGE ?= slipway.dev/manager

# The same packages are compiled for the program and for what writes the release, so that nothing is compiled twice.
.PHONY: release
release: build ## write dist/ as provider repositories, with the program: VERSION=vX.Y.Z IMAGE=name
	@go run $(TRIM) -pgo=$(PGO:auto=cmd/slipway/default.pgo) ./hack/release -dir '$(DIST)' -version '$(VERSION)' -image '$(IMAGE)' -binary '$(BIN)' \
		-time '$(shell git log -1 --format=%cI)'

.PHONY: image
image: prerequisites build ## build the node images: of workers, and of control planes on machines
	@bin/slipway image build
	@bin/slipway image build --control-plane

FURTHER := v1.35.4

.PHONY: versions
versions: image ## compile the further Kubernetes version that end-to-end tests use, nine minutes when nothing is cached
	@bin/slipway versions add $(FURTHER) --node-image --data-dir dist/versions

.PHONY: demo
demo: image ## from nothing to a running workload cluster
	@hack/demo.sh bin/slipway '$(DATA_DIR)'

.PHONY: check
check: ## lint, unit tests and simulations; no Docker
	@hack/test.sh --no-docker

.PHONY: race
race: ## unit tests with the race detector, an hour; needs gcc, no Docker
	@hack/race.sh

.PHONY: fuzz
fuzz: ## fuzz each parser of what others write for FUZZTIME (10s), an hour the first time; what is found is kept as a test
	@hack/fuzz.sh

.PHONY: vulncheck
vulncheck: ## ask Go's database for vulnerabilities of what is used; needs the internet
	@go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...

# The program is built as lint and tests compile: Kubernetes is compiled once, not once more with the profile and without paths.
test: PGO := off
test: TRIM :=

.PHONY: test
test: prerequisites browser image versions ## every test, those on real nodes included
	@hack/test.sh

.PHONY: test-kubeadm
test-kubeadm: prerequisites image versions ## kubeadm clusters of real nodes: upgrade, nodes killed during a rollout, faults of one, a lost quorum: three quarters of an hour
	@bin/slipway image build --control-plane --kubernetes-version $(FURTHER)
	@SLIPWAY_E2E_KUBEADM=1 SLIPWAY_BIN=$(CURDIR)/bin/slipway go test -vet=off -pgo=off -timeout 90m -count 1 -v -run 'TestKubeadmUpgrade|TestKubeadmRecovery|TestKubeadmRolloutKilled|TestKubeadmFaults' ./test/e2e

test-ssh: PGO := off
test-ssh: TRIM :=

.PHONY: test-ssh
test-ssh: prerequisites build ## hosts over SSH on plain Debian machines in containers: bundle, bootstrap, reboot, cleaning, virtual IP address: half an hour
	@SLIPWAY_TEST_SSH=1 SLIPWAY_BIN=$(CURDIR)/bin/slipway go test -vet=off -pgo=off -timeout 120m -count 1 -v ./test/ssh

.PHONY: test-slow
test-slow: prerequisites image ## the quickstart, a rollout and a fleet of 20 beside busy loops at four times the processors: nothing is restarted, nothing is called dead: an hour
	@SLIPWAY_E2E_SLOW=1 SLIPWAY_BIN=$(CURDIR)/bin/slipway go test -vet=off -pgo=off -timeout 4h -count 1 -v -run TestSlow ./test/e2e

.PHONY: thirdparty
thirdparty: prerequisites image ## a provider that is not ours, compiled from its module (half an hour), on the node of a management cluster
	@SLIPWAY_E2E_THIRDPARTY=1 SLIPWAY_BIN=$(CURDIR)/bin/slipway go test -vet=off -pgo=off -timeout 90m -count 1 -v -run TestThirdPartyProvider ./test/e2e

.PHONY: test-deployments
test-deployments: prerequisites image ## a release of this build as Deployments on real nodes: a fleet, a control plane in a Pod, a leader that is lost, a pivot
	@$(MAKE) release VERSION=v0.9.9 IMAGE=slipway.example/manager DIST=dist/deployments BIN=bin/deployments/slipway
	@SLIPWAY_E2E_DEPLOYMENTS=$(CURDIR)/dist/deployments SLIPWAY_BIN=$(CURDIR)/bin/deployments/slipway \
		go test -vet=off -pgo=off -timeout 40m -count 1 -v -run TestDeployments ./test/e2e

test-faults: PGO := off
test-faults: TRIM :=

.PHONY: test-faults
test-faults: prerequisites image ## inject faults into simulated clusters, containers, processes and a small disk (root), and read why things are broken, with slipway explain and on the page: ten minutes
	@SLIPWAY_FAULTS=1 SLIPWAY_BIN=$(CURDIR)/bin/slipway go test -vet=off -pgo=off -timeout 60m -parallel 80 -count 1 -v -run '^TestFaults$$' ./test/faults
	@SLIPWAY_FAULTS_REAL=1 SLIPWAY_BIN=$(CURDIR)/bin/slipway go test -vet=off -pgo=off -timeout 60m -parallel 80 -count 1 -v -run TestFaultsReal ./test/faults

.PHONY: test-browser
test-browser: browser ## test the page of slipway ui in headless Chromium, some minutes; UPDATE=1 takes the pictures of docs/ui.md; no Docker
	@SLIPWAY_BROWSER=1 go test -vet=off -pgo=off -timeout 30m -count 1 -v ./test/browser $(if $(UPDATE),-update)

.PHONY: interop
interop: ## the reference's clusterctl and controllers with a release of this build; no Docker
	@hack/interop.sh

NEWEST := v1.37.2

.PHONY: bench
bench: prerequisites image ## measure, plan a hundred changes, simulate 10,000 control planes, try the newest Kubernetes version: an hour
	@go run ./test/bench launch --slipway bin/slipway
	@go test -vet=off -pgo=off -run '^$$' -bench . -benchmem ./internal/controllers/cluster ./internal/controllers/machinepool \
		./internal/condition ./internal/kubeadm/bootstrap/render ./internal/conversion
	@SLIPWAY_SEEDS=10000 go test -vet=off -pgo=off -timeout 1h -count 1 -run TestSimulation ./internal/kubeadm/controlplane
	@SLIPWAY_PLAN_CHANGES=100 go test -vet=off -pgo=off -timeout 2h -count 1 -run TestPlanIsWhatHappens ./internal/cli/plan
	@bin/slipway versions add $(NEWEST) --node-image --data-dir dist/versions
	@SLIPWAY_E2E_NEWEST=$(NEWEST) SLIPWAY_BIN=$(CURDIR)/bin/slipway go test -vet=off -pgo=off -timeout 1h -count 1 -v -run TestNewestVersion ./test/e2e

CLUSTERS ?= 1,10,100,300,1000
OUT ?= dist/bench/fleet.json

.PHONY: bench-fleet
bench-fleet: build ## measure a fleet of simulated clusters: CLUSTERS=n[,n...] OUT=file.json; no Docker
	@go run ./test/bench fleet --slipway bin/slipway --clusters '$(CLUSTERS)' --out '$(OUT)'

.PHONY: profile
profile: build ## record what the compiler optimizes for (cmd/slipway/default.pgo), by running a fleet; no Docker
	@hack/profile.sh bin/slipway cmd/slipway/default.pgo

MEMORY ?= /dev/shm

.PHONY: bench-isolation
bench-isolation: build ## measure what clusters that do not answer do to the others: MEMORY=folder in memory; no Docker
	@TMPDIR='$(MEMORY)' go run ./test/bench isolation --slipway bin/slipway

.PHONY: bench-hook
bench-hook: build ## measure calls of Runtime Extensions, a quarter of an hour: OUT=file.json; no Docker
	@go run ./test/bench hook --slipway bin/slipway --out '$(if $(filter file,$(origin OUT)),dist/bench/hook.json,$(OUT))'

.PHONY: bench-ui
bench-ui: build ## measure slipway ui with 1,000 simulated clusters: page, updates, memory, idle CPU, two minutes; no Docker
	@SLIPWAY_BENCH_UI=$(CURDIR)/bin/slipway go test -vet=off -pgo=off -timeout 10m -count 1 -v -run TestProcess ./test/browser

bench-ssh: PGO := off
bench-ssh: TRIM :=

.PHONY: bench-ssh
bench-ssh: prerequisites build ## measure clusters on hosts over SSH, on five Debian machines in containers, and the memory for 50 hosts at once: a quarter of an hour
	@SLIPWAY_BENCH_SSH=1 SLIPWAY_BIN=$(CURDIR)/bin/slipway go test -vet=off -pgo=off -timeout 60m -count 1 -v -run 'TestSpeed|TestManyHosts' ./test/ssh

REFERENCE ?=

.PHONY: bench-verbs
bench-verbs: build ## measure init, describe, backup and move of many objects, ten minutes: OUT=file.json REFERENCE=clusterctl; no Docker
	@go run -pgo=off ./test/bench verbs --slipway bin/slipway --reference '$(REFERENCE)' --out '$(if $(filter file,$(origin OUT)),dist/bench/verbs.json,$(OUT))'

.PHONY: bench-timeline
bench-timeline: build image ## draw where the time goes until two real nodes are Ready, from traces: OUT=file.svg
	@go run -pgo=off ./test/bench timeline --slipway bin/slipway --out '$(if $(filter file,$(origin OUT)),dist/bench/timeline.svg,$(OUT))'

SOAK ?= 30m

.PHONY: soak
soak: build ## disturb two fleets for half an hour each, killing the manager every minute: SOAK=time; no Docker
	@go run ./test/bench soak --slipway bin/slipway --time '$(SOAK)'
	@go run ./test/bench soak --slipway bin/slipway --time '$(SOAK)' --clusters 10 --manifest examples/fleet-kubeadm-class.yaml --out dist/bench/soak-class.json

.PHONY: clean
clean: ## remove what was built; stop and remove the demo
	@[ ! -x bin/slipway ] || bin/slipway down --delete --data-dir '$(DATA_DIR)' || true
	@rm -rf bin dist
