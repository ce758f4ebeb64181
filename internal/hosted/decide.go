package hosted

import (
	"cmp"
	"fmt"
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

// Stages of a control plane. A plan is at the first stage that is not complete. Conditions and the report compare the
// stages, so their order must not change.
const (
	stageDeletion = iota + 1
	stageQuiesced
	// stagePrerequisites creates the Secrets, once the Cluster and its infrastructure allow it.
	stagePrerequisites
	// stageAdmission checks whether the process may run with its version, configuration, data and endpoint.
	stageAdmission
	// stageStart starts the process, or restarts it with another configuration.
	stageStart
	// stageProcess waits for the API server, and stageAddons applies the objects for nodes.
	stageProcess
	stageAddons
)

// planner plans one step. If its plan is at a stage, the following steps have to wait.
type planner func(snapshot) reconciler.Plan

// follow joins the plans of consecutive steps, up to the first that is at a stage.
func follow(s snapshot, steps ...planner) reconciler.Plan {
	var all reconciler.Plan
	for _, step := range steps {
		p := step(s)
		all.Do(p.Actions...)
		all.Reads, all.Waits = append(all.Reads, p.Reads...), append(all.Waits, p.Waits...)
		all.RecheckIn(p.Recheck)
		if all.Stage = p.Stage; all.Stage.Order != 0 {
			break
		}
	}
	return all
}

// at sets the stage of a plan with something to do or to wait for.
func at(stage int, p reconciler.Plan) reconciler.Plan {
	if !p.Idle() {
		p.Enter(stage, "")
	}
	return p
}

// waitForUser returns a plan at a stage that waits until a user changes the control plane or the configuration.
func waitForUser(s snapshot, stage int, reason, text string) (p reconciler.Plan) {
	p.WaitFor(reason, "%s", text).For(kind, s.Plane.Name).UntilUserActs()
	return at(stage, p)
}

// decide plans the reconciliation of a HostedControlPlane. The driver of package reconciler calls it in each
// reconciliation after observe, and again after each read that the plan requests. It must not have side effects. The
// rows are in the order of the steps, and a step with something to do or to wait for ends the plan. Writes of the
// kubeconfig, of owners, faults and annotations do not end the plan. Neither does a fetch while the process runs:
//
//	no owner, or Cluster missing                        wait
//	quiesced                                            see decideQuiesced
//	infrastructure not provisioned, no endpoint         wait
//	backend chooses the endpoint, and there is none     choose one, or wait until it is known
//	CA missing / unusable                               create / wait for the user
//	encryption keys missing / not those in use          create / wait for the user
//	kubeconfig missing, wrong endpoint, half expired    write
//	Slipway's Secret without owner                      set owner
//	version not available                               wait; a running process continues
//	requested snapshot not fetched                      fetch; a running process continues
//	configuration not valid, issuer denied              wait; a running process continues
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
	switch {
	case !s.Plane.DeletionTimestamp.IsZero():
		return planDeletion(s)
	case s.Cluster == nil:
		var p reconciler.Plan
		p.WaitFor("WaitingForCluster", "Waiting for the Cluster to own this control plane").For(kind, s.Plane.Name).ToChange("metadata.ownerReferences")
		return at(stagePrerequisites, p)
	case s.Quiesce != (quiesceRequest{}):
		return decideQuiesced(s)
	}
	return follow(s, planPrerequisites, planKeys, planSecrets, planVersion, planRestore, planConfiguration, planStart, planProcess,
		planAddons, planRecord, planInspection)
}

// endpointOf returns the desired endpoint of the API server: the endpoint of the Cluster or, if it has none,
// of the control plane.
func endpointOf(s snapshot) clusterv1.APIEndpoint {
	if s.Cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return s.Cluster.Spec.ControlPlaneEndpoint
	}
	return s.Plane.Spec.ControlPlaneEndpoint
}

// planPrerequisites chooses the endpoint, if the backend does so, and creates the CAs. A control plane that chooses its
// endpoint does not need the infrastructure for them.
func planPrerequisites(s snapshot) reconciler.Plan {
	if s.Capabilities.OwnEndpoints != nil {
		return at(stagePrerequisites, follow(s, planReservation, planAuthorities, planInfrastructure))
	}
	if p := planInfrastructure(s); !p.Idle() {
		return at(stagePrerequisites, p)
	}
	return at(stagePrerequisites, planAuthorities(s))
}

// planInfrastructure waits for the infrastructure of the Cluster and the control plane endpoint.
func planInfrastructure(s snapshot) (p reconciler.Plan) {
	if !ptr.Deref(s.Cluster.Status.Initialization.InfrastructureProvisioned, false) || !endpointOf(s).IsValid() {
		p.WaitFor(clusterv1.WaitingForClusterInfrastructureReadyReason,
			"Waiting for the infrastructure of Cluster %s to be provisioned and its control plane endpoint to be set", s.Cluster.Name).
			For("Cluster", s.Cluster.Name).ToChange("status.initialization.infrastructureProvisioned")
	}
	return p
}

// planReservation chooses the endpoint of a control plane that does not use the endpoint of the
// infrastructure. It also restores missing resources of a separate endpoint.
func planReservation(s snapshot) (p reconciler.Plan) {
	separate := s.Capabilities.OwnEndpoints.SeparateEndpoint
	if separate { // which can incur costs
		if p := planQuota(s); !p.Idle() {
			p.Stage = reconciler.Stage{} // the CAs are created nevertheless
			return p
		}
	}
	chosen := endpointOf(s).IsValid()
	known := chosen || separate && s.Process.EndpointProblem != ""
	if !known || separate && !s.Process.Reserved {
		p.Do(reserveEndpoint{})
	}
	if !chosen && s.Process.EndpointProblem != "" {
		p.WaitFor("WaitingForEndpoint", "%s", s.Process.EndpointProblem).For(kind, s.Plane.Name).ToChange("spec.controlPlaneEndpoint")
	}
	return p
}

// planAuthorities checks the CAs. It creates new ones only before the first start, because later the cluster depends on
// the existing ones.
func planAuthorities(s snapshot) (p reconciler.Plan) {
	for _, purpose := range s.authorities() {
		secret, name := s.Secrets[purpose], purpose.SecretName(s.Cluster.Name)
		switch {
		case secret == nil && s.Process.Exists:
			p.WaitFor("CertificatesMissing", "Secret %s is missing; restore it from a backup, because the cluster was created with it", name).
				For("Secret", name).UntilUserActs()
		case secret == nil:
			p.Do(createAuthority{Purpose: purpose, Cluster: s.Cluster.Name})
		default:
			if text := authorityProblem(purpose, secret, s.Now); text != "" {
				p.WaitFor("CertificatesInvalid", "%s", text).For("Secret", name).UntilUserActs()
			}
		}
	}
	if len(p.Actions) > 0 && len(p.Waits) == 0 {
		p.RecheckIn(unwatchedRecheck) // Secrets are not watched by name before they exist
	}
	return p
}

// planSecrets writes the kubeconfig and restores the owner of Secrets that this controller created. A new kubeconfig
// gets its owner together with the content.
func planSecrets(s snapshot) (p reconciler.Plan) {
	owner, kubeconfig := ownerOf(s.Plane), s.Secrets[purposeKubeconfig]
	outdated := ""
	if kubeconfig == nil || owner.Manages(kubeconfig) {
		outdated = s.Kubeconfig.ReissueReason(endpointOf(s), s.Secrets[purposeCA], s.Now)
		switch {
		case outdated != "":
			p.Do(writeKubeconfig{Cluster: s.Cluster.Name, Why: outdated})
		case !s.Kubeconfig.Until.IsZero():
			p.RecheckIn(s.Kubeconfig.HalfLife().Sub(s.Now))
		}
	}
	for _, purpose := range append(s.authorities(), purposeKubeconfig, purposeEncryption) {
		secret := s.Secrets[purpose]
		if secret != nil && owner.NeedsOwner(secret) && (purpose != purposeKubeconfig || outdated == "") {
			p.Do(ownSecret{Purpose: purpose, Cluster: s.Cluster.Name})
		}
	}
	return p
}

// planVersion waits if no suitable version of Kubernetes is available.
func planVersion(s snapshot) (p reconciler.Plan) {
	if _, included := versionToRun(s); !included {
		p = waitForUser(s, stageAdmission, "VersionNotSupported", notSupported(s))
		p.RecheckIn(versionAgain)
	}
	return p
}

// planConfiguration checks the configuration of the process.
func planConfiguration(s snapshot) (p reconciler.Plan) {
	if err := configOf(s).Validate(); err != nil {
		return waitForUser(s, stageAdmission, processconfig.ReasonInvalid, err.Error())
	}
	if why := deniedIssuer(s); why != "" {
		return waitForUser(s, stageAdmission, reasonDenied, why)
	}
	return p
}

// planStart starts a process that is missing or has another configuration.
func planStart(s snapshot) (p reconciler.Plan) {
	cfg := configOf(s)
	if s.Process.Exists && s.Process.Config == cfg.Hash() {
		return p
	}
	if p := follow(s, planData, planEndpoint, planQuota, planTurn); !p.Idle() {
		return p
	}
	p.Do(startProcess{Version: cfg.Version, Why: whyStart(s, cfg), Empty: isDataLost(s) && !hasStagedRestore(s)})
	if s.Capabilities.Started == nil {
		p.WaitFor("ControlPlaneStarting", "The API server is starting").For(kind, s.Plane.Name).ToChange(untilAvailable)
	}
	return at(stageStart, p)
}

// planProcess changes the running process if its backend requires it, and waits until the API server is ready.
func planProcess(s snapshot) (p reconciler.Plan) {
	if s.Process.Pending != "" {
		p.Do(changeProcess{What: s.Process.Pending})
		p.RecheckIn(unwatchedRecheck) // to observe the result
	} else if s.Process.InvalidRequest != "" {
		p.Do(changeProcess{What: s.Process.InvalidRequest}) // its error reports the problem until the annotation changes
	}
	if !s.Process.Ready {
		p.WaitFor("ControlPlaneNotReady", "%s", notReady(s)).For(kind, s.Plane.Name).ToChange(untilAvailable)
		p.Enter(stageProcess, "")
	}
	return p
}

// planAddons applies the add-ons. Restored data may contain older ones, therefore they are applied before the restore
// ends.
func planAddons(s snapshot) (p reconciler.Plan) {
	restored := wasRestored(s)
	if hash := addonsOf(s).Hash(); s.Capabilities.Addons && (restored || hash != s.Plane.Status.AddonsHash) {
		p.Do(applyAddons{Hash: hash})
	}
	if restored {
		p.Do(finishRestore{Snapshot: s.Restore.Request.Snapshot})
	}
	return at(stageAddons, p)
}

// planRecord records in an annotation that the control plane was initialized.
func planRecord(s snapshot) (p reconciler.Plan) {
	if ptr.Deref(s.Plane.Status.Initialization.ControlPlaneInitialized, false) && s.Plane.Annotations[hostedv1.InitializedAnnotation] == "" {
		p.Do(recordInitialized{})
	}
	return p
}

// planData checks whether a process may be started with the existing data. An initialized control plane is not started
// without data, unless its backend permits it.
func planData(s snapshot) (p reconciler.Plan) {
	if hasStagedRestore(s) { // the process validates the snapshot before it changes existing data
		return p
	}
	version, _ := versionToRun(s)
	if err := s.Process.Data.Problem(version); err != nil {
		return waitForUser(s, stageAdmission, fault.As(err).Reason, fault.UserMessage(err))
	}
	if isDataLost(s) && s.Capabilities.EmptyStartEffect == "" {
		p.WaitFor(processconfig.ReasonDataMissing,
			"The control plane was initialized, but its data is not %s; restore it from a backup, or delete the cluster, because Slipway does not start it without data",
			s.Capabilities.DataLocation()).For(kind, s.Plane.Name).UntilUserActs()
	}
	return at(stageAdmission, p)
}

// isDataLost reports whether the control plane was initialized and its data is missing.
func isDataLost(s snapshot) bool {
	initialized := ptr.Deref(s.Plane.Status.Initialization.ControlPlaneInitialized, false) || s.Plane.Annotations[hostedv1.InitializedAnnotation] != ""
	return initialized && !s.Process.Data.Exists && !s.Process.Running
}

// planQuota checks whether a further control plane is permitted.
func planQuota(s snapshot) (p reconciler.Plan) {
	switch {
	case s.Capabilities.Denied != "":
		return waitForUser(s, stageAdmission, reasonDenied, s.Capabilities.Denied)
	case s.Process.Exists || s.Process.Reserved || s.Capabilities.Maximum == (policy.Maximum{}):
		return p
	case !s.PlaneCount.Known:
		p.Reads = append(p.Reads, backend.CountControlPlanes{})
		return at(stageAdmission, p)
	}
	if why := s.Capabilities.Maximum.Exceeded(s.Capabilities.Setting, s.Plane.Namespace, s.PlaneCount.Own, s.PlaneCount.All); why != "" {
		p = waitForUser(s, stageAdmission, "TooManyControlPlanes", why)
		p.RecheckIn(countRecheck)
	}
	return p
}

// planTurn checks whether a running process may be restarted now. If a new build runs another patch version than
// the spec requests, this affects all control planes at once, therefore they restart one after the other.
func planTurn(s snapshot) (p reconciler.Plan) {
	version, _ := versionToRun(s)
	switch {
	case !s.Process.Running || s.Process.Version == version || version == s.Plane.Spec.Version || s.Turn.Granted:
	case !s.Turn.Known:
		p.Reads = append(p.Reads, backend.TakeTurn{})
	default:
		p.WaitFor("WaitingForTurn", "Waiting for another hosted control plane to be ready before this one restarts at %s", version).
			For(kind, s.Plane.Name).ForTime()
		p.RecheckIn(turnAgain)
	}
	return at(stageAdmission, p)
}

// whyStart returns the reason for a start, for the action and the event.
func whyStart(s snapshot, cfg processconfig.Config) string {
	switch {
	case hasStagedRestore(s):
		return "it restores snapshot " + s.Process.Data.Staged.Snapshot
	case isDataLost(s):
		return "its data is not " + s.Capabilities.DataLocation() + "; " + s.Capabilities.EmptyStartEffect
	case !s.Process.Exists:
		return "it has not run yet"
	case s.Process.Version != "" && s.Process.Version != cfg.Version:
		return "it runs " + s.Process.Version
	case s.Process.Config == "":
		return "slipway was restarted; " + s.Capabilities.RestartEffect
	}
	return "its configuration changed"
}

// notReady returns the reason why the API server is not ready, for a message.
func notReady(s snapshot) string {
	switch {
	case s.Process.Problem != "":
		return s.Process.Problem
	case s.Process.Running:
		return "The API server is not ready yet"
	case s.Process.LastExit != "":
		return fmt.Sprintf("The control plane exited (%s) and is being restarted", s.Process.LastExit)
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

// configOf returns the configuration of the process. A change of its hash restarts the control plane.
func configOf(s snapshot) processconfig.Config {
	spec, endpoint := s.Plane.Spec, endpointOf(s)
	services, pods := ranges(s)
	run, _ := versionToRun(s)
	keys, mark := keyFingerprint(s)
	return processconfig.Config{
		Cluster: s.Cluster.Name, Version: run,
		Endpoint: endpoint.String(), Everywhere: s.Capabilities.OwnEndpoints != nil && s.Capabilities.OwnEndpoints.SeparateEndpoint,
		ServiceCIDRs: services, PodCIDRs: pods, ServiceDomain: s.Cluster.Spec.ClusterNetwork.ServiceDomain,
		CertificateDays: int(spec.CertificateValidityDays), Names: spec.CertificateNames, Authorities: fingerprint(s),
		APIServer: spec.APIServer.Flags(), ControllerManager: spec.ControllerManager.Flags(),
		Scheduler: spec.Scheduler.Flags(), Etcd: spec.Etcd.Flags(),
		Security: s.security(), EncryptionKeys: keys, EncryptionMark: mark, Restore: restoreID(s), RunMode: s.Quiesce.RunMode(),
	}
}

// ranges returns the CIDRs of Services and Pods, with defaults.
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
func addonsOf(s snapshot) addons.Params {
	spec, endpoint := s.Plane.Spec.Addons, endpointOf(s)
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

// planDeletion stops the process and deletes its data. The Secrets are garbage collected with their owner.
func planDeletion(s snapshot) (p reconciler.Plan) {
	if s.Process.Exists || s.Process.Reserved {
		p.Do(removeProcess{})
		p.WaitFor("ControlPlaneStopping", "The control plane is being stopped and its data is being deleted").For(kind, s.Plane.Name).ToChange("status.process")
	}
	p.Enter(stageDeletion, clusterv1.DeletionCompletedReason)
	return p
}
