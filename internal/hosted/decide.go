package hosted

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hosted/addons"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// reasonDenied is the reason of waits for the operator to permit something.
const reasonDenied = "DeniedByPolicy"

// untilAvailable is the field that changes when the API server is ready, which the backend notifies.
const untilAvailable = "condition " + hostedv1.AvailableCondition

// Default CIDRs of Clusters that specify none.
const (
	defaultServices = "10.96.0.0/16"
	defaultPods     = "10.244.0.0/16"
)

// decide plans the reconciliation of a HostedControlPlane. Each row waits for the rows above it:
//
//	no owner, or Cluster missing                        wait
//	quiesced                                            see decideQuiesced
//	infrastructure not provisioned, no endpoint         wait
//	backend chooses the endpoint, and there is none     choose one, or wait until it is known
//	CA missing / unusable                               create / wait for the user
//	encryption keys missing / not those in use          create / wait for the user
//	kubeconfig missing, wrong endpoint, half expired    write
//	Slipway's Secret without owner                      set owner
//	version not available, issuer denied                wait; a running process continues
//	requested snapshot not fetched                      fetch; a running process continues
//	start without data, or with newer data              wait
//	start at an endpoint that is not permitted          wait; a running process continues
//	                                                    (a backend may restart without the data, and report it)
//	too many; another restarts at its patch version     wait
//	process missing or with another configuration       (re)start
//	faults differ from the annotations                  change
//	API server not ready                                wait for the backend
//	add-ons differ from the params, or data restored    apply
//	requested snapshot restored                         remove the request
//	initialized, without annotation                     annotate
//	add-on state unknown or too old                     read
func decide(s snapshot) reconciler.Plan {
	if !s.Plane.DeletionTimestamp.IsZero() {
		return decideDeletion(s)
	}
	var p reconciler.Plan
	if s.Cluster == nil {
		p.WaitFor("WaitingForCluster", "Waiting for the Cluster to own this control plane").For(kind, s.Plane.Name).ToChange("metadata.ownerReferences")
		return p
	}
	if s.Quiesce != (quiesceRequest{}) {
		return decideQuiesced(s)
	}
	endpoint, alone := endpointOf(s), s.Capabilities.OwnEndpoints != nil
	if alone { // independent of the infrastructure
		decideReservation(s, endpoint, &p)
		decideAuthorities(s, &p)
	}
	if !ptr.Deref(s.Cluster.Status.Initialization.InfrastructureProvisioned, false) || !endpoint.IsValid() {
		p.WaitFor(clusterv1.WaitingForClusterInfrastructureReadyReason,
			"Waiting for the infrastructure of Cluster %s to be provisioned and its control plane endpoint to be set", s.Cluster.Name).
			For("Cluster", s.Cluster.Name).ToChange("status.initialization.infrastructureProvisioned")
		return p
	}
	if len(p.Actions) > 0 || len(p.Waits) > 0 || !alone && !decideAuthorities(s, &p) || !decideKeys(s, &p) {
		return p
	}
	decideKubeconfig(s, endpoint, &p)
	decideOwner(s, &p)
	decideProcess(s, endpoint, &p)
	return p
}

// decideOwner restores the owner of Secrets that this controller created. The kubeconfig gets it together
// with new content.
func decideOwner(s snapshot, p *reconciler.Plan) {
	written := slices.ContainsFunc(p.Actions, func(a reconciler.Action) bool { _, ok := a.(writeKubeconfig); return ok })
	for _, purpose := range append(s.authorities(), purposeKubeconfig, purposeEncryption) {
		secret := s.Secrets[purpose]
		if secret != nil && ownerOf(s.Plane).NeedsOwner(secret) && (purpose != purposeKubeconfig || !written) {
			p.Do(ownSecret{Purpose: purpose, Cluster: s.Cluster.Name})
		}
	}
}

// endpointOf returns the desired endpoint of the API server: the endpoint of the Cluster or, if it has none,
// of the control plane.
func endpointOf(s snapshot) clusterv1.APIEndpoint {
	if s.Cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return s.Cluster.Spec.ControlPlaneEndpoint
	}
	return s.Plane.Spec.ControlPlaneEndpoint
}

// decideReservation chooses the endpoint of a control plane that does not use the endpoint of the
// infrastructure. It also restores missing resources of a separate endpoint.
func decideReservation(s snapshot, endpoint clusterv1.APIEndpoint, p *reconciler.Plan) {
	elsewhere := s.Capabilities.OwnEndpoints.SeparateEndpoint
	known := endpoint.IsValid() || elsewhere && s.Process.EndpointProblem != ""
	if elsewhere && !decideQuota(s, p) { // a separate endpoint can incur costs
		return
	}
	if !known || elsewhere && !s.Process.Reserved {
		p.Do(reserveEndpoint{})
	}
	if !endpoint.IsValid() && s.Process.EndpointProblem != "" {
		p.WaitFor("WaitingForEndpoint", "%s", s.Process.EndpointProblem).For(kind, s.Plane.Name).ToChange("spec.controlPlaneEndpoint")
	}
}

// decideAuthorities reports whether all CAs exist and are usable. It creates new ones only before the first
// start, because later the cluster depends on the existing ones.
func decideAuthorities(s snapshot, p *reconciler.Plan) bool {
	complete := true
	for _, purpose := range s.authorities() {
		secret, ok := s.Secrets[purpose]
		switch {
		case !ok && s.Process.Exists:
			p.WaitFor("CertificatesMissing", "Secret %s is gone; restore it from a backup: the cluster was made with it", purpose.SecretName(s.Cluster.Name)).
				For("Secret", purpose.SecretName(s.Cluster.Name)).UntilUserActs()
			complete = false
		case !ok:
			p.Do(createAuthority{Purpose: purpose, Cluster: s.Cluster.Name})
			complete = false
		default:
			if text := authorityProblem(purpose, secret, s.Now); text != "" {
				p.WaitFor("CertificatesInvalid", "%s", text).For("Secret", secret.Name).UntilUserActs()
				complete = false
			}
		}
	}
	if !complete && len(p.Waits) == 0 {
		p.RecheckIn(unwatchedRecheck) // Secrets are not watched by name before they exist
	}
	return complete
}

func decideKubeconfig(s snapshot, endpoint clusterv1.APIEndpoint, p *reconciler.Plan) {
	secret := s.Secrets[purposeKubeconfig]
	if secret != nil && !ownerOf(s.Plane).Manages(secret) {
		return
	}
	if why := s.Kubeconfig.ReissueReason(endpoint, s.Secrets[purposeCA], s.Now); why != "" {
		p.Do(writeKubeconfig{Cluster: s.Cluster.Name, Why: why})
		return
	}
	if !s.Kubeconfig.Until.IsZero() {
		p.RecheckIn(s.Kubeconfig.HalfLife().Sub(s.Now))
	}
}

func decideProcess(s snapshot, endpoint clusterv1.APIEndpoint, p *reconciler.Plan) {
	if _, included := versionToRun(s); !included {
		p.WaitFor("VersionNotSupported", "%s", notSupported(s)).For(kind, s.Plane.Name).UntilUserActs()
		p.RecheckIn(versionAgain)
		return
	}
	cfg := configOf(s, endpoint)
	if !decideRestore(s, p) {
		return
	}
	if err := cfg.Validate(); err != nil {
		p.WaitFor(processconfig.ReasonInvalid, "%s", err.Error()).For(kind, s.Plane.Name).UntilUserActs()
		return
	}
	if why := deniedIssuer(s); why != "" {
		p.WaitFor(reasonDenied, "%s", why).For(kind, s.Plane.Name).UntilUserActs()
		return
	}
	if !s.Process.Exists || s.Process.Config != cfg.Hash() {
		if !decideData(s, cfg, p) || !decideEndpoint(s, cfg, p) || !decideQuota(s, p) || !decideTurn(s, cfg, p) {
			return
		}
		p.Do(startProcess{Version: cfg.Version, Why: whyStart(s, cfg), Empty: isDataLost(s) && !hasStagedRestore(s)})
		if s.Capabilities.Started == nil {
			p.WaitFor("ControlPlaneStarting", "The API server is starting").For(kind, s.Plane.Name).ToChange(untilAvailable)
		}
		return
	}
	if s.Process.Pending != "" {
		p.Do(changeProcess{What: s.Process.Pending})
		p.RecheckIn(unwatchedRecheck) // to observe the result
	} else if s.Process.InvalidRequest != "" {
		p.Do(changeProcess{What: s.Process.InvalidRequest}) // its error reports the problem until the annotation changes
	}
	if !s.Process.Ready {
		p.WaitFor("ControlPlaneNotReady", "%s", notReady(s)).For(kind, s.Plane.Name).ToChange(untilAvailable)
		return
	}
	restored := wasRestored(s) // the restored data may be older than the add-ons
	if params := addonsOf(s, endpoint); s.Capabilities.Addons && (restored || params.Hash() != s.Plane.Status.AddonsHash) {
		p.Do(applyAddons{Hash: params.Hash()})
		if !restored {
			return
		}
	}
	if restored {
		p.Do(finishRestore{Snapshot: s.Restore.Request.Snapshot})
		return
	}
	if ptr.Deref(s.Plane.Status.Initialization.ControlPlaneInitialized, false) && s.Plane.Annotations[hostedv1.InitializedAnnotation] == "" {
		p.Do(recordInitialized{})
	}
	decideAddons(s, p)
}

// decideData reports whether a process may be started with the existing data. An initialized control plane is
// not started without data, unless its backend permits it.
func decideData(s snapshot, cfg processconfig.Config, p *reconciler.Plan) bool {
	if hasStagedRestore(s) { // the process validates the snapshot before it changes existing data
		return true
	}
	if err := s.Process.Data.Problem(cfg.Version); err != nil {
		p.WaitFor(fault.As(err).Reason, "%s", fault.UserMessage(err)).For(kind, s.Plane.Name).UntilUserActs()
		return false
	}
	if isDataLost(s) && s.Capabilities.EmptyStartEffect == "" {
		p.WaitFor(processconfig.ReasonDataMissing,
			"The control plane was initialized and its data is not %s; restore it from a backup, or delete the cluster: it is not started empty", s.Capabilities.DataLocation()).For(kind, s.Plane.Name).UntilUserActs()
		return false
	}
	return true
}

// isDataLost reports whether the control plane was initialized and its data is missing.
func isDataLost(s snapshot) bool {
	initialized := ptr.Deref(s.Plane.Status.Initialization.ControlPlaneInitialized, false) || s.Plane.Annotations[hostedv1.InitializedAnnotation] != ""
	return initialized && !s.Process.Data.Exists && !s.Process.Running
}

// decideQuota reports whether a further control plane is permitted.
func decideQuota(s snapshot, p *reconciler.Plan) bool {
	switch {
	case s.Capabilities.Denied != "":
		p.WaitFor(reasonDenied, "%s", s.Capabilities.Denied).For(kind, s.Plane.Name).UntilUserActs()
		return false
	case s.Process.Exists || s.Process.Reserved || s.Capabilities.Maximum == (policy.Maximum{}):
		return true
	case !s.PlaneCount.Known:
		p.Reads = append(p.Reads, backend.CountControlPlanes{})
		return false
	}
	if why := s.Capabilities.Maximum.Exceeded(s.Capabilities.Setting, s.Plane.Namespace, s.PlaneCount.Own, s.PlaneCount.All); why != "" {
		p.WaitFor("TooManyControlPlanes", "%s", why).For(kind, s.Plane.Name).UntilUserActs()
		p.RecheckIn(countRecheck)
		return false
	}
	return true
}

// decideTurn reports whether a running process may be restarted now. If a new build runs another patch
// version than the spec requests, this affects all control planes at once, therefore they restart one after
// the other.
func decideTurn(s snapshot, cfg processconfig.Config, p *reconciler.Plan) bool {
	switch {
	case !s.Process.Running || s.Process.Version == cfg.Version || cfg.Version == s.Plane.Spec.Version:
		return true
	case !s.Turn.Known:
		p.Reads = append(p.Reads, backend.TakeTurn{})
		return false
	case !s.Turn.Granted:
		p.WaitFor("WaitingForTurn", "Waiting for another hosted control plane to be ready before this one restarts at %s", cfg.Version).For(kind, s.Plane.Name).ForTime()
		p.RecheckIn(turnAgain)
		return false
	}
	return true
}

func whyStart(s snapshot, cfg processconfig.Config) string {
	switch {
	case hasStagedRestore(s):
		return "it restores snapshot " + s.Process.Data.Staged.Snapshot
	case isDataLost(s):
		return "its data is not " + s.Capabilities.DataLocation() + "; " + s.Capabilities.EmptyStartEffect
	case !s.Process.Exists:
		return "it did not run before"
	case s.Process.Version != "" && s.Process.Version != cfg.Version:
		return "it runs " + s.Process.Version
	case s.Process.Config == "":
		return "slipway was restarted; " + s.Capabilities.RestartEffect
	}
	return "its configuration changed"
}

func notReady(s snapshot) string {
	switch {
	case s.Process.Problem != "":
		return s.Process.Problem
	case s.Process.Running:
		return "The API server does not answer yet"
	case s.Process.LastExit != "":
		return fmt.Sprintf("The control plane died (%s) and is started again", s.Process.LastExit)
	}
	return "The control plane is starting"
}

const (
	// versionAgain is the delay before available versions are checked again, because they are not watched.
	versionAgain = 5 * time.Second
	// turnAgain is the delay before the turn is requested again, and countRecheck before control planes are
	// counted again.
	turnAgain, countRecheck = 2 * time.Second, 30 * time.Second
)

// versionToRun returns the version that the process should run. It returns false if no suitable version is
// available.
func versionToRun(s snapshot) (string, bool) {
	return s.Capabilities.VersionToRun(s.Plane.Spec.Version, s.Process.Exists)
}

func notSupported(s snapshot) string { return s.Capabilities.NotSupported(s.Plane) }

// configOf returns the configuration of the process.
func configOf(s snapshot, endpoint clusterv1.APIEndpoint) processconfig.Config {
	spec := s.Plane.Spec
	services, pods := ranges(s)
	run, _ := versionToRun(s)
	keys, mark := keyFingerprint(s)
	return processconfig.Config{
		Cluster: s.Cluster.Name, Version: run,
		Endpoint: fmt.Sprintf("%s:%d", bracket(endpoint.Host), endpoint.Port), Everywhere: s.Capabilities.OwnEndpoints != nil && s.Capabilities.OwnEndpoints.SeparateEndpoint,
		ServiceCIDRs: services, PodCIDRs: pods, ServiceDomain: s.Cluster.Spec.ClusterNetwork.ServiceDomain,
		CertificateDays: int(spec.CertificateValidityDays), Names: spec.CertificateNames, Authorities: fingerprint(s),
		APIServer: spec.APIServer.Flags(), ControllerManager: spec.ControllerManager.Flags(),
		Scheduler: spec.Scheduler.Flags(), Etcd: spec.Etcd.Flags(),
		Security: s.security(), EncryptionKeys: keys, EncryptionMark: mark, Restore: restoreID(s), RunMode: s.Quiesce.RunMode(),
	}
}

func bracket(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

func ranges(s snapshot) (services, pods []string) {
	services, pods = s.Cluster.Spec.ClusterNetwork.Services.CIDRBlocks, s.Cluster.Spec.ClusterNetwork.Pods.CIDRBlocks
	if len(services) == 0 {
		services = []string{defaultServices}
	}
	if len(pods) == 0 {
		pods = []string{defaultPods}
	}
	return services, pods
}

// addonsOf returns the parameters of the objects for the workload cluster.
func addonsOf(s snapshot, endpoint clusterv1.APIEndpoint) addons.Params {
	spec := s.Plane.Spec.Addons
	services, pods := ranges(s)
	p := addons.Params{
		ClusterName: s.Cluster.Name, Version: s.Plane.Spec.Version, Host: endpoint.Host, Port: endpoint.Port,
		CA: s.Secrets[purposeCA].Data[corev1.TLSCertKey], ServiceCIDR: strings.Join(services, ","), PodCIDR: strings.Join(pods, ","),
		ServiceDomain:   cmp.Or(s.Cluster.Spec.ClusterNetwork.ServiceDomain, processconfig.DefaultServiceDomain),
		ImageRepository: cmp.Or(spec.ImageRepository, hostedv1.DefaultImageRepository),
		CoreDNS:         !spec.CoreDNS.Disabled, KubeProxy: !spec.KubeProxy.Disabled,
		SignedServing: s.Plane.Spec.Security.Effective().KubeletServingCertificates != "",
	}
	p.OwnKubeProxy = p.ImageRepository == hostedv1.DefaultImageRepository
	return p
}

// decideDeletion stops the process and deletes its data. The Secrets are garbage collected with their owner.
func decideDeletion(s snapshot) reconciler.Plan {
	var p reconciler.Plan
	if s.Process.Exists || s.Process.Reserved {
		p.Do(removeProcess{})
		p.WaitFor("ControlPlaneStopping", "The control plane is being stopped and its data removed").For(kind, s.Plane.Name).ToChange("status.process")
	}
	return p
}
