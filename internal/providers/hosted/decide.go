package hosted

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/plane/workload"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providers/hosted/addons"
	"github.com/slipwayhq/slipway/internal/providers/hosted/backend"
	"github.com/slipwayhq/slipway/internal/providers/hosted/quiescing"
)

// reasonDenied is the reason of a wait for the operator to allow something.
const reasonDenied = "DeniedByPolicy"

// untilAvailable is what changes when the API server answers: the backend tells.
const untilAvailable = "condition " + hostedv1.AvailableCondition

// Default address ranges, for Clusters that name none.
const (
	defaultServices = "10.96.0.0/16"
	defaultPods     = "10.244.0.0/16"
)

// Decide says what to do about a HostedControlPlane. From top to bottom, each row waits for those above it:
//
//	no owner, or Cluster not there                     wait
//	kept from its work                                 see decideQuiesced
//	infrastructure not provisioned, no endpoint        wait
//	backend chooses the endpoint, and there is none    choose one, or wait until it is known
//	authority missing / unusable                       create / wait for a person
//	keys of encryption missing / not those in use      create / wait for a person
//	kubeconfig missing, of another endpoint, half old  write
//	Secret of ours without owner                       own it
//	version not available, issuer not allowed          wait; what runs goes on running
//	a snapshot asked for is not here yet               fetch it; what runs goes on running
//	to be started without its data, or with newer      wait
//	to be started where it may not listen              wait; what runs goes on running
//	                                                   (a backend may start one again without its data, and say so)
//	too many; another restarts at its patch version    wait
//	process missing or of another configuration        (re)start
//	faults not those of the annotations                change
//	API server does not answer                         wait for the backend
//	add-ons not those of these params, or restored     apply
//	the snapshot asked for was restored                remove the request
//	initialized, and not noted                         note
//	how they fare is not known, or for some time       ask
func Decide(s Snapshot) loop.Plan {
	if !s.Plane.DeletionTimestamp.IsZero() {
		return decideDeletion(s)
	}
	var p loop.Plan
	if s.Cluster == nil {
		p.WaitFor("WaitingForCluster", "Waiting for the Cluster to own this control plane").For(kind, s.Plane.Name).ToChange("metadata.ownerReferences")
		return p
	}
	if s.Quiesce != (quiescing.Request{}) {
		return decideQuiesced(s)
	}
	endpoint, alone := endpointOf(s), s.Terms.Listens != nil
	if alone { // nothing that it needs comes from the infrastructure
		decideReservation(s, endpoint, &p)
		decideAuthorities(s, &p)
	}
	if !isTrue(s.Cluster.Status.Initialization.InfrastructureProvisioned) || !endpoint.IsValid() {
		p.WaitFor(clusterv1.WaitingForClusterInfrastructureReadyReason,
			"Waiting for the infrastructure of Cluster %s to be provisioned and its control plane endpoint to be set", s.Cluster.Name).
			For("Cluster", s.Cluster.Name).ToChange("status.initialization.infrastructureProvisioned")
		return p
	}
	if len(p.Actions) > 0 || len(p.Wait) > 0 || !alone && !decideAuthorities(s, &p) || !decideKeys(s, &p) {
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
		if secret != nil && ownerOf(s.Plane).Lost(secret) && (purpose != PurposeKubeconfig || !written) {
			p.Do(OwnSecret{Purpose: purpose, Cluster: s.Cluster.Name})
		}
	}
}

// endpointOf is where the API server is to be: what the Cluster says, else what the control plane itself does.
func endpointOf(s Snapshot) clusterv1.APIEndpoint {
	if s.Cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return s.Cluster.Spec.ControlPlaneEndpoint
	}
	return s.Plane.Spec.ControlPlaneEndpoint
}

// decideReservation chooses the endpoint of a control plane that listens where it chooses itself. One with an endpoint of its own keeps
// what leads there.
func decideReservation(s Snapshot, endpoint clusterv1.APIEndpoint, p *loop.Plan) {
	elsewhere := s.Terms.Listens.Elsewhere
	known := endpoint.IsValid() || elsewhere && s.Process.EndpointProblem != ""
	if elsewhere && !decideRoom(s, p) { // an endpoint of its own may cost something
		return
	}
	if !known || elsewhere && !s.Process.Reserved {
		p.Do(ReserveEndpoint{})
	}
	if !endpoint.IsValid() && s.Process.EndpointProblem != "" {
		p.WaitFor("WaitingForEndpoint", "%s", s.Process.EndpointProblem).For(kind, s.Plane.Name).ToChange("spec.controlPlaneEndpoint")
	}
}

// decideAuthorities reports whether all authorities are there and usable. New ones are made only before the first
// start: afterwards they would not be those that everything was signed with.
func decideAuthorities(s Snapshot, p *loop.Plan) bool {
	complete := true
	for _, purpose := range s.authorities() {
		secret, ok := s.Secrets[purpose]
		switch {
		case !ok && s.Process.Exists:
			p.WaitFor("CertificatesMissing", "Secret %s is gone; restore it from a backup: the cluster was made with it", purpose.SecretName(s.Cluster.Name)).
				For("Secret", purpose.SecretName(s.Cluster.Name)).ForPerson()
			complete = false
		case !ok:
			p.Do(CreateAuthority{Purpose: purpose, Cluster: s.Cluster.Name})
			complete = false
		default:
			if text := problem(purpose, secret, s.Now); text != "" {
				p.WaitFor("CertificatesInvalid", "%s", text).For("Secret", secret.Name).ForPerson()
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
	if secret != nil && !ownerOf(s.Plane).Manages(secret) {
		return
	}
	if why := s.Kubeconfig.Outdated(endpoint, s.Secrets[PurposeCA], s.Now); why != "" {
		p.Do(WriteKubeconfig{Cluster: s.Cluster.Name, Why: why})
		return
	}
	if !s.Kubeconfig.Until.IsZero() {
		p.RecheckIn(s.Kubeconfig.HalfLife().Sub(s.Now))
	}
}

func decideProcess(s Snapshot, endpoint clusterv1.APIEndpoint, p *loop.Plan) {
	if _, included := versionToRun(s); !included {
		p.WaitFor("VersionNotSupported", "%s", notSupported(s)).For(kind, s.Plane.Name).ForPerson()
		p.RecheckIn(versionAgain)
		return
	}
	cfg := configOf(s, endpoint)
	if !decideRestore(s, p) {
		return
	}
	if err := cfg.Validate(); err != nil {
		p.WaitFor(workload.ReasonInvalid, "%s", err.Error()).For(kind, s.Plane.Name).ForPerson()
		return
	}
	if why := deniedIssuer(s); why != "" {
		p.WaitFor(reasonDenied, "%s", why).For(kind, s.Plane.Name).ForPerson()
		return
	}
	if !s.Process.Exists || s.Process.Config != cfg.Hash() {
		if !decideData(s, cfg, p) || !decideEndpoint(s, cfg, p) || !decideRoom(s, p) || !decideTurn(s, cfg, p) {
			return
		}
		p.Do(StartProcess{Version: cfg.Version, Why: whyStart(s, cfg), Empty: isDataLost(s) && !restores(s)})
		if s.Terms.Started == nil {
			p.WaitFor("ControlPlaneStarting", "The API server is starting").For(kind, s.Plane.Name).ToChange(untilAvailable)
		}
		return
	}
	if s.Process.Pending != "" {
		p.Do(ChangeProcess{What: s.Process.Pending})
		p.RecheckIn(soon) // what it leads to is seen then
	} else if s.Process.Unclear != "" {
		p.Do(ChangeProcess{What: s.Process.Unclear}) // its error says so; nothing changes until a person changes something
	}
	if !s.Process.Ready {
		p.WaitFor("ControlPlaneNotReady", "%s", notReady(s)).For(kind, s.Plane.Name).ToChange(untilAvailable)
		return
	}
	restored := wasRestored(s) // to data from before add-ons were applied, perhaps
	if params := addonsOf(s, endpoint); s.Terms.Addons && (restored || params.Hash() != s.Plane.Status.AddonsHash) {
		p.Do(ApplyAddons{Hash: params.Hash()})
		if !restored {
			return
		}
	}
	if restored {
		p.Do(FinishRestore{Snapshot: s.Restore.Request.Snapshot})
		return
	}
	if isTrue(s.Plane.Status.Initialization.ControlPlaneInitialized) && s.Plane.Annotations[hostedv1.InitializedAnnotation] == "" {
		p.Do(NoteInitialized{})
	}
	decideAddons(s, p)
}

// decideData reports whether a process may be started with the data that is here: one that was initialized is not started
// without any, but where its backend says what becomes of it then.
func decideData(s Snapshot, cfg workload.Config, p *loop.Plan) bool {
	if restores(s) { // the process checks it before it touches what is there
		return true
	}
	if err := s.Process.Data.Problem(cfg.Version); err != nil {
		p.WaitFor(fault.As(err).Reason, "%s", fault.UserMessage(err)).For(kind, s.Plane.Name).ForPerson()
		return false
	}
	if isDataLost(s) && s.Terms.Emptied == "" {
		p.WaitFor(workload.ReasonDataMissing,
			"The control plane was initialized and its data is not %s; restore it from a backup, or delete the cluster: it is not started empty", s.Terms.PlaceOfData()).For(kind, s.Plane.Name).ForPerson()
		return false
	}
	return true
}

// isDataLost reports whether the control plane was initialized, and the data that it had then is not here.
func isDataLost(s Snapshot) bool {
	initialized := isTrue(s.Plane.Status.Initialization.ControlPlaneInitialized) || s.Plane.Annotations[hostedv1.InitializedAnnotation] != ""
	return initialized && !s.Process.Data.Exists && !s.Process.Running
}

// decideRoom reports whether there may be one more control plane.
func decideRoom(s Snapshot, p *loop.Plan) bool {
	switch {
	case s.Terms.Denied != "":
		p.WaitFor(reasonDenied, "%s", s.Terms.Denied).For(kind, s.Plane.Name).ForPerson()
		return false
	case s.Process.Exists || s.Process.Reserved || s.Terms.Maximum == (policy.Maximum{}):
		return true
	case !s.Room.Known:
		p.Ask = append(p.Ask, backend.CountControlPlanes{})
		return false
	}
	if why := s.Terms.Maximum.Exceeded(s.Terms.Setting, s.Plane.Namespace, s.Room.Own, s.Room.All); why != "" {
		p.WaitFor("TooManyControlPlanes", "%s", why).For(kind, s.Plane.Name).ForPerson()
		p.RecheckIn(roomAgain)
		return false
	}
	return true
}

// decideTurn reports whether a process that runs may be restarted now. Another patch version than the spec names is this
// build's doing, and concerns all control planes at once: they take turns.
func decideTurn(s Snapshot, cfg workload.Config, p *loop.Plan) bool {
	switch {
	case !s.Process.Running || s.Process.Version == cfg.Version || cfg.Version == s.Plane.Spec.Version:
		return true
	case !s.Turn.Known:
		p.Ask = append(p.Ask, backend.TakeTurn{})
		return false
	case !s.Turn.Mine:
		p.WaitFor("WaitingForTurn", "Waiting for another hosted control plane to be ready before this one restarts at %s", cfg.Version).For(kind, s.Plane.Name).ForTime()
		p.RecheckIn(turnAgain)
		return false
	}
	return true
}

func whyStart(s Snapshot, cfg workload.Config) string {
	switch {
	case restores(s):
		return "it restores snapshot " + s.Process.Data.Staged.Snapshot
	case isDataLost(s):
		return "its data is not " + s.Terms.PlaceOfData() + "; " + s.Terms.Emptied
	case !s.Process.Exists:
		return "it did not run before"
	case s.Process.Version != "" && s.Process.Version != cfg.Version:
		return "it runs " + s.Process.Version
	case s.Process.Config == "":
		return "slipway was restarted; " + s.Terms.Continued
	}
	return "its configuration changed"
}

func notReady(s Snapshot) string {
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
	// versionAgain is when to check again for a version, of which no watch tells.
	versionAgain = 5 * time.Second
	// turnAgain is when to ask again for a turn, roomAgain when to count again.
	turnAgain, roomAgain = 2 * time.Second, 30 * time.Second
)

// versionToRun is the version that the process is to be of. False: it can be of none that fits.
func versionToRun(s Snapshot) (string, bool) {
	return s.Terms.VersionToRun(s.Plane.Spec.Version, s.Process.Exists)
}

func notSupported(s Snapshot) string { return s.Terms.NotSupported(s.Plane) }

// configOf is what the process is told.
func configOf(s Snapshot, endpoint clusterv1.APIEndpoint) workload.Config {
	spec := s.Plane.Spec
	services, pods := ranges(s)
	run, _ := versionToRun(s)
	keys, mark := keyFingerprint(s)
	return workload.Config{
		Cluster: s.Cluster.Name, Version: run,
		Endpoint: fmt.Sprintf("%s:%d", bracket(endpoint.Host), endpoint.Port), Everywhere: s.Terms.Listens != nil && s.Terms.Listens.Elsewhere,
		ServiceCIDRs: services, PodCIDRs: pods, ServiceDomain: s.Cluster.Spec.ClusterNetwork.ServiceDomain,
		CertificateDays: int(spec.CertificateValidityDays), Names: spec.CertificateNames, Authorities: fingerprint(s),
		APIServer: spec.APIServer.Flags(), ControllerManager: spec.ControllerManager.Flags(),
		Scheduler: spec.Scheduler.Flags(), Etcd: spec.Etcd.Flags(),
		Security: s.security(), EncryptionKeys: keys, EncryptionMark: mark, Restore: restoreID(s), Only: s.Quiesce.Only(),
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

// addonsOf is what the workload cluster is given.
func addonsOf(s Snapshot, endpoint clusterv1.APIEndpoint) addons.Params {
	spec := s.Plane.Spec.Addons
	services, pods := ranges(s)
	p := addons.Params{
		ClusterName: s.Cluster.Name, Version: s.Plane.Spec.Version, Host: endpoint.Host, Port: endpoint.Port,
		CA: s.Secrets[PurposeCA].Data[corev1.TLSCertKey], ServiceCIDR: strings.Join(services, ","), PodCIDR: strings.Join(pods, ","),
		ServiceDomain:   cmp.Or(s.Cluster.Spec.ClusterNetwork.ServiceDomain, workload.DefaultServiceDomain),
		ImageRepository: cmp.Or(spec.ImageRepository, hostedv1.DefaultImageRepository),
		CoreDNS:         !spec.CoreDNS.Disabled, KubeProxy: !spec.KubeProxy.Disabled,
		SignedServing: s.Plane.Spec.Security.Effective().KubeletServingCertificates != "",
	}
	p.OwnKubeProxy = p.ImageRepository == hostedv1.DefaultImageRepository
	return p
}

// decideDeletion stops the process and removes its data. Secrets go with their owner.
func decideDeletion(s Snapshot) loop.Plan {
	var p loop.Plan
	if s.Process.Exists || s.Process.Reserved {
		p.Do(RemoveProcess{})
		p.WaitFor("ControlPlaneStopping", "The control plane is being stopped and its data removed").For(kind, s.Plane.Name).ToChange("status.process")
	}
	return p
}

func isTrue(b *bool) bool { return b != nil && *b }
