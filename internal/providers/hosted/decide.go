package hosted

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/plane/workload"
	"github.com/slipwayhq/slipway/internal/providers/hosted/addons"
)

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
//	kubeconfig missing, of another endpoint, half old  write                               SE-01, CP-14
//	Secret of ours without owner                       own it                              OR-01
//	version not carried                                wait; what runs goes on running
//	to be started where it may not listen              wait; what runs goes on running
//	process missing or of another configuration        (re)start                           CP-04
//	API server does not answer                         wait for the supervisor
//	add-ons not those of these params                  apply
func Decide(s Snapshot) loop.Plan {
	if !s.Plane.DeletionTimestamp.IsZero() {
		return decideDeletion(s)
	}
	var p loop.Plan
	if s.Cluster == nil {
		p.WaitFor("WaitingForCluster", "waiting for the Cluster to own this control plane")
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
			"waiting for the infrastructure of Cluster %s to be provisioned and its control plane endpoint to be set", s.Cluster.Name)
		return p
	}
	if len(p.Actions) > 0 || len(p.Wait) > 0 || !s.simulated() && !decideAuthorities(s, &p) {
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
	for _, purpose := range append(s.authorities(), PurposeKubeconfig) {
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
	if !carried(s) {
		p.WaitFor("VersionNotCarried", "%s", notCarried(s))
		return
	}
	cfg := configOf(s, endpoint)
	if err := cfg.Validate(); err != nil {
		p.WaitFor("ControlPlaneConfigInvalid", "%s", err.Error())
		return
	}
	if !s.Process.Exists || s.Process.Config != cfg.Hash() {
		if !decideEndpoint(s, cfg, p) {
			return
		}
		p.Do(StartProcess{Version: s.Plane.Spec.Version, Why: whyStart(s, cfg)})
		if s.simulated() {
			decideFaults(s, p)
			return // it answers at once
		}
		p.WaitFor("ControlPlaneStarting", "the API server is starting")
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
	}
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
	case s.Process.Config == "" && s.simulated():
		return "slipway was restarted; it goes on with what it wrote down"
	case s.Process.Config == "":
		return "slipway was restarted; a process that lives is taken over"
	case s.Process.Version != "" && s.Process.Version != cfg.Version:
		return "it runs " + s.Process.Version
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

// carried reports whether this binary can run the version.
func carried(s Snapshot) bool {
	return s.simulated() || slices.Contains(s.Carried, s.Plane.Spec.Version)
}

func notCarried(s Snapshot) string {
	return fmt.Sprintf("Kubernetes %s is not carried by this binary, which carries %s; set spec.version to one of these or run a release of slipway that carries it",
		s.Plane.Spec.Version, strings.Join(s.Carried, ", "))
}

// configOf is what the process is told.
func configOf(s Snapshot, endpoint clusterv1.APIEndpoint) workload.Config {
	spec := s.Plane.Spec
	services, pods := ranges(s)
	return workload.Config{
		Cluster: s.Cluster.Name, Version: spec.Version,
		Endpoint:     fmt.Sprintf("%s:%d", bracket(endpoint.Host), endpoint.Port),
		ServiceCIDRs: services, PodCIDRs: pods, ServiceDomain: s.Cluster.Spec.ClusterNetwork.ServiceDomain,
		CertificateDays: int(spec.CertificateValidityDays), Authorities: fingerprint(s),
		APIServer: flags(spec.APIServer), ControllerManager: flags(spec.ControllerManager),
		Scheduler: flags(spec.Scheduler), Etcd: flags(spec.Etcd),
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
		p.WaitFor("ControlPlaneStopping", "the control plane is being stopped and its data removed")
	}
	return p
}

func isTrue(b *bool) bool { return b != nil && *b }
