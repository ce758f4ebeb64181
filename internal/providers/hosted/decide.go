package hosted

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/plane/workload"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providers/hosted/addons"
	versions "github.com/slipwayhq/slipway/internal/version"
)

// reasonDenied is the reason of a wait for the operator to allow something.
const reasonDenied = "DeniedByPolicy"

// Default address ranges, for Clusters that name none.
const (
	defaultServices = "10.96.0.0/16"
	defaultPods     = "10.244.0.0/16"
)

// Decide says what to do about a HostedControlPlane. From top to bottom, each row waits for those above it:
//
//	no owner, or Cluster not there                     wait                                CP-01
//	infrastructure not provisioned, no endpoint        wait
//	simulated: no endpoint                             choose one                          CP-02
//	authority missing / unusable                       create / wait for a person          SE-02, CP-15
//	keys of encryption missing / not those in use      create / wait for a person
//	kubeconfig missing, of another endpoint, half old  write                               SE-01, CP-14
//	Secret of ours without owner                       own it                              OR-01
//	version not included, issuer not allowed           wait; what runs goes on running
//	to be started without its data, or with newer      wait
//	to be started where it may not listen              wait; what runs goes on running
//	too many; another restarts at its patch version    wait
//	process missing or of another configuration        (re)start                           CP-04
//	API server does not answer                         wait for the supervisor
//	add-ons not those of these params                  apply
//	initialized, and not noted                         note
//	how they fare is not known, or for some time       ask
func Decide(s Snapshot) loop.Plan {
	if !s.Plane.DeletionTimestamp.IsZero() {
		return decideDeletion(s)
	}
	var p loop.Plan
	if s.Cluster == nil {
		p.WaitFor("WaitingForCluster", "Waiting for the Cluster to own this control plane")
		return p
	}
	endpoint := endpointOf(s)
	if s.simulated() && !endpoint.IsValid() {
		p.Do(ReserveEndpoint{})
	}
	if s.simulated() { // nothing that it needs comes from the infrastructure
		decideAuthorities(s, &p)
	}
	if !isTrue(s.Cluster.Status.Initialization.InfrastructureProvisioned) || !endpoint.IsValid() {
		p.WaitFor(clusterv1.WaitingForClusterInfrastructureReadyReason,
			"Waiting for the infrastructure of Cluster %s to be provisioned and its control plane endpoint to be set", s.Cluster.Name)
		return p
	}
	if len(p.Actions) > 0 || len(p.Wait) > 0 || !s.simulated() && !decideAuthorities(s, &p) || !decideKeys(s, &p) {
		return p
	}
	decideKubeconfig(s, endpoint, &p)
	decideOwner(s, &p)
	decideProcess(s, endpoint, &p)
	return p
}

// decideOwner restores the owner of what was made here. The kubeconfig gets it together with new content.
func decideOwner(s Snapshot, p *loop.Plan) {
	written := slices.ContainsFunc(p.Actions, func(a loop.Action) bool { _, ok := a.(WriteKubeconfig); return ok })
	for _, purpose := range append(s.authorities(), PurposeKubeconfig, PurposeEncryption) {
		secret := s.Secrets[purpose]
		if secret != nil && lost(secret, s.Plane) && (purpose != PurposeKubeconfig || !written) {
			p.Do(OwnSecret{Purpose: purpose, Cluster: s.Cluster.Name})
		}
	}
}

// endpointOf is where the API server is to be: what the Cluster says, else what the control plane itself does (CP-02).
func endpointOf(s Snapshot) clusterv1.APIEndpoint {
	if s.Cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return s.Cluster.Spec.ControlPlaneEndpoint
	}
	return s.Plane.Spec.ControlPlaneEndpoint
}

// decideAuthorities reports whether all authorities are there and usable. New ones are made only before the first
// start: afterwards they would not be those that everything was signed with.
func decideAuthorities(s Snapshot, p *loop.Plan) bool {
	complete := true
	for _, purpose := range s.authorities() {
		secret, ok := s.Secrets[purpose]
		switch {
		case !ok && s.Process.Exists:
			p.WaitFor("CertificatesMissing", "Secret %s is gone; restore it from a backup: the cluster was made with it", purpose.secret(s.Cluster.Name))
			complete = false
		case !ok:
			p.Do(CreateAuthority{Purpose: purpose, Cluster: s.Cluster.Name})
			complete = false
		default:
			if text := problem(purpose, secret); text != "" {
				p.WaitFor("CertificatesInvalid", "%s", text)
				complete = false
			}
		}
	}
	if !complete && len(p.Wait) == 0 {
		p.RecheckIn(soon) // Secrets are not watched by name before they exist
	}
	return complete
}

func decideKubeconfig(s Snapshot, endpoint clusterv1.APIEndpoint, p *loop.Plan) {
	secret := s.Secrets[PurposeKubeconfig]
	if secret != nil && !ours(secret, s.Plane) {
		return
	}
	if why := s.Kubeconfig.outdated(s, endpoint); why != "" {
		p.Do(WriteKubeconfig{Cluster: s.Cluster.Name, Why: why})
		return
	}
	if !s.Kubeconfig.Until.IsZero() {
		p.RecheckIn(s.Kubeconfig.halfLife().Sub(s.Now))
	}
}

func decideProcess(s Snapshot, endpoint clusterv1.APIEndpoint, p *loop.Plan) {
	if _, included := versionToRun(s); !included {
		p.WaitFor("VersionNotCarried", "%s", notCarried(s))
		return
	}
	cfg := configOf(s, endpoint)
	if err := cfg.Validate(); err != nil {
		p.WaitFor(workload.ReasonInvalid, "%s", err.Error())
		return
	}
	if why := deniedIssuer(s); why != "" && !s.simulated() {
		p.WaitFor(reasonDenied, "%s", why)
		return
	}
	if !s.Process.Exists || s.Process.Config != cfg.Hash() {
		if !decideData(s, cfg, p) || !decideEndpoint(s, cfg, p) || !decideRoom(s, p) || !decideTurn(s, cfg, p) {
			return
		}
		p.Do(StartProcess{Version: cfg.Version, Why: whyStart(s, cfg)})
		if s.simulated() {
			decideFaults(s, p)
			return // it answers at once
		}
		p.WaitFor("ControlPlaneStarting", "The API server is starting")
		return
	}
	if s.simulated() {
		decideFaults(s, p)
	}
	if !s.Process.Ready {
		p.WaitFor("ControlPlaneNotReady", "%s", notReady(s))
		return
	}
	if params := addonsOf(s, endpoint); !s.simulated() && params.Hash() != s.Plane.Status.AddonsHash {
		p.Do(ApplyAddons{Hash: params.Hash()})
		return
	}
	if isTrue(s.Plane.Status.Initialization.ControlPlaneInitialized) && s.Plane.Annotations[hostedv1.InitializedAnnotation] == "" && !s.simulated() {
		p.Do(NoteInitialized{})
	}
	decideAddons(s, p)
}

// decideData reports whether a process may be started with the data that is here: one that was initialized is never
// started without any.
func decideData(s Snapshot, cfg workload.Config, p *loop.Plan) bool {
	if s.simulated() {
		return true
	}
	if err := s.Process.Data.Problem(cfg.Version); err != nil {
		p.WaitFor(fault.As(err).Reason, "%s", fault.UserMessage(err))
		return false
	}
	initialized := isTrue(s.Plane.Status.Initialization.ControlPlaneInitialized) || s.Plane.Annotations[hostedv1.InitializedAnnotation] != ""
	if initialized && !s.Process.Data.Exists && !s.Process.Running {
		p.WaitFor(workload.ReasonDataMissing,
			"The control plane was initialized and its data is not on this host; restore it from a backup, or delete the cluster: it is not started empty")
		return false
	}
	return true
}

// decideRoom reports whether there may be one more control plane.
func decideRoom(s Snapshot, p *loop.Plan) bool {
	most, setting := s.Policy.Maxima.ControlPlanes, "maxima.controlPlanes"
	if s.simulated() {
		if why := s.Policy.DeniedSimulated(); why != "" {
			p.WaitFor(reasonDenied, "%s", why)
			return false
		}
		most, setting = s.Policy.Maxima.SimulatedControlPlanes, "maxima.simulatedControlPlanes"
	}
	switch {
	case s.Process.Exists || most == (policy.Maximum{}):
		return true
	case !s.Room.Known:
		p.Ask = append(p.Ask, CountControlPlanes{})
		return false
	}
	if why := most.Exceeded(setting, s.Plane.Namespace, s.Room.Own, s.Room.All); why != "" {
		p.WaitFor("TooManyControlPlanes", "%s", why)
		p.RecheckIn(roomAgain)
		return false
	}
	return true
}

// decideTurn reports whether a process that runs may be restarted now. Another patch version than the spec names is this
// build's doing, and concerns all control planes at once: they take turns.
func decideTurn(s Snapshot, cfg workload.Config, p *loop.Plan) bool {
	switch {
	case s.simulated() || !s.Process.Running || s.Process.Version == cfg.Version || cfg.Version == s.Plane.Spec.Version:
		return true
	case !s.Turn.Known:
		p.Ask = append(p.Ask, TakeTurn{})
		return false
	case !s.Turn.Mine:
		p.WaitFor("WaitingForTurn", "Waiting for another hosted control plane to be ready before this one restarts at %s", cfg.Version)
		p.RecheckIn(turnAgain)
		return false
	}
	return true
}

// decideFaults makes what is wrong what the annotations ask for.
func decideFaults(s Snapshot, p *loop.Plan) {
	if want := faultsOf(s.Plane); want != s.Process.Faults {
		p.Do(Break(want))
	}
}

func whyStart(s Snapshot, cfg workload.Config) string {
	switch {
	case !s.Process.Exists:
		return "it does not run yet"
	case s.Process.Version != "" && s.Process.Version != cfg.Version:
		return "it runs " + s.Process.Version
	case s.Process.Config == "" && s.simulated():
		return "slipway was restarted; it goes on with what it wrote down"
	case s.Process.Config == "":
		return "slipway was restarted; a process that lives is taken over"
	}
	return "its configuration changed"
}

func notReady(s Snapshot) string {
	if s.Process.Running && s.Process.Faults.Down != 0 {
		return "the API server does not answer: an annotation makes it unreachable"
	}
	if s.Process.Running {
		return "the API server does not answer yet"
	}
	if s.Process.LastExit != "" {
		return fmt.Sprintf("the control plane died (%s) and is started again", s.Process.LastExit)
	}
	return "the control plane is starting"
}

// versionToRun is the version that the process is to be of: that of the spec, or where this build does not include it and
// the control plane ran before, a newer patch version of the same minor version. False: this build can run neither.
func versionToRun(s Snapshot) (string, bool) {
	want := s.Plane.Spec.Version
	if s.simulated() || slices.Contains(s.Carried, want) {
		return want, true
	}
	asked, err := versions.Parse(want)
	if err != nil || !s.Process.Exists {
		return want, false
	}
	for _, c := range s.Carried {
		if v, err := versions.Parse(c); err == nil && v.SameMinor(asked) && v.Compare(asked) > 0 {
			return c, true
		}
	}
	return want, false
}

func notCarried(s Snapshot) string {
	return fmt.Sprintf("Kubernetes %s is not included in this build, which includes %s; set spec.version to one of these, or use a release of slipway that includes it",
		s.Plane.Spec.Version, strings.Join(s.Carried, ", "))
}

// configOf is what the process is told.
func configOf(s Snapshot, endpoint clusterv1.APIEndpoint) workload.Config {
	spec := s.Plane.Spec
	services, pods := ranges(s)
	run, _ := versionToRun(s)
	var security hostedv1.Security
	if !s.simulated() {
		security = spec.Security
	}
	return workload.Config{
		Cluster: s.Cluster.Name, Version: run,
		Endpoint:     fmt.Sprintf("%s:%d", bracket(endpoint.Host), endpoint.Port),
		ServiceCIDRs: services, PodCIDRs: pods, ServiceDomain: s.Cluster.Spec.ClusterNetwork.ServiceDomain,
		CertificateDays: int(spec.CertificateValidityDays), Authorities: fingerprint(s),
		APIServer: flags(spec.APIServer), ControllerManager: flags(spec.ControllerManager),
		Scheduler: flags(spec.Scheduler), Etcd: flags(spec.Etcd),
		Security: security, EncryptionKeys: keyFingerprint(s),
	}
}

func bracket(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

func ranges(s Snapshot) (services, pods []string) {
	services, pods = s.Cluster.Spec.ClusterNetwork.Services.CIDRBlocks, s.Cluster.Spec.ClusterNetwork.Pods.CIDRBlocks
	if len(services) == 0 {
		services = []string{defaultServices}
	}
	if len(pods) == 0 {
		pods = []string{defaultPods}
	}
	return services, pods
}

func flags(c hostedv1.Component) []string {
	var out []string
	for _, a := range c.ExtraArgs {
		value := ""
		if a.Value != nil {
			value = *a.Value
		}
		out = append(out, "--"+a.Name+"="+value)
	}
	return out
}

// addonsOf is what the workload cluster is given.
func addonsOf(s Snapshot, endpoint clusterv1.APIEndpoint) addons.Params {
	spec := s.Plane.Spec.Addons
	services, pods := ranges(s)
	p := addons.Params{
		ClusterName: s.Cluster.Name, Version: s.Plane.Spec.Version, Host: endpoint.Host, Port: endpoint.Port,
		CA: s.Secrets[PurposeCA].Data[corev1.TLSCertKey], ServiceCIDR: strings.Join(services, ","), PodCIDR: strings.Join(pods, ","),
		ServiceDomain: s.Cluster.Spec.ClusterNetwork.ServiceDomain, ImageRepository: spec.ImageRepository,
		CoreDNS: !spec.CoreDNS.Disabled, KubeProxy: !spec.KubeProxy.Disabled,
	}
	if p.ServiceDomain == "" {
		p.ServiceDomain = workload.DefaultServiceDomain
	}
	if p.ImageRepository == "" {
		p.ImageRepository = hostedv1.DefaultImageRepository
	}
	return p
}

// decideDeletion stops the process and removes its data. Secrets go with their owner.
func decideDeletion(s Snapshot) loop.Plan {
	var p loop.Plan
	if s.Process.Exists {
		p.Do(RemoveProcess{})
		p.WaitFor("ControlPlaneStopping", "The control plane is being stopped and its data removed")
	}
	return p
}

func isTrue(b *bool) bool { return b != nil && *b }
