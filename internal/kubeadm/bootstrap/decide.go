package bootstrap

import (
	"bytes"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/reconciler"
)

// Reasons for waiting. Reasons that also exist for v1beta1 conditions have the same names.
const (
	waitOwner          = "WaitingForOwner"
	waitCluster        = "WaitingForCluster"
	waitInfrastructure = "WaitingForClusterInfrastructure"
	waitControlPlane   = "WaitingForControlPlaneAvailable"
	waitCertificates   = "WaitingForCertificates"
	waitConnection     = "WaitingForWorkloadCluster"
	waitCorrection     = "DataSecretGenerationFailed"
	waitUpdate         = "WaitingForInPlaceUpdate"
)

// unwatched is the interval for checking objects that are not watched, such as the Secrets that a KubeadmConfig
// references.
const unwatched = 15 * time.Second

// whileLocked is the interval for checking a lock held by another Machine.
const whileLocked = 30 * time.Second

// afterCreating is the delay before continuing after the creation of the lock or of certificates, which are not
// watched.
const afterCreating = 100 * time.Millisecond

// afterOwning is the delay before continuing after an ownership change, until the cache has the updated Secret.
const afterOwning = time.Second

// stagePending is the stage of every plan: bootstrap data is not written yet. Its reason and message are those of the
// wait, if the plan waits.
const stagePending = 1

// decide returns the plan for a KubeadmConfig. The driver of package reconciler calls it in each reconciliation after
// observe, and again after each read that the plan requests. It must not have side effects. The steps up to the data
// Secret and their order are in the package documentation.
func decide(s snapshot) reconciler.Plan {
	var p reconciler.Plan
	switch _, updating := s.Config.Annotations[clusterv1.UpdateInProgressAnnotation]; {
	case s.Owner == nil:
		p.WaitFor(waitOwner, "Waiting for a Machine or MachinePool to become the owner of this KubeadmConfig").For(kindKubeadmConfig, s.Config.Name).
			ToChange("metadata.ownerReferences")
	case s.Owner.Deleted:
		decideDeletion(s, &p)
	case s.Cluster == nil:
		p.WaitFor(waitCluster, "Waiting for Cluster %s to exist", s.Owner.ClusterName).For(clusterv1.ClusterKind, s.Owner.ClusterName).ToChange("")
	case !s.Cluster.DeletionTimestamp.IsZero():
		if !s.hasData() {
			p.WaitFor(waitCluster, "Cluster %s is being deleted", s.Cluster.Name).For(clusterv1.ClusterKind, s.Cluster.Name).ToChange("")
		}
	case updating:
		p.WaitFor(waitUpdate, "Waiting for the in-place update of %s %s to end", s.Owner.Kind, s.Owner.Name).For(kindKubeadmConfig, s.Config.Name).
			ToChange("metadata.annotations")
	default:
		decideRelease(s, &p)
		decideMachine(s, &p)
	}
	p.Enter(stagePending, bootstrapv1.KubeadmConfigDataSecretNotAvailableReason)
	return p
}

// decideMachine plans the bootstrap data for an owner and Cluster that are not being deleted.
func decideMachine(s snapshot, p *reconciler.Plan) {
	switch {
	case !s.hasData(), s.isNeeded():
		decideFirst(s, p)
	case needsOwner(s):
		p.Do(ownData{Name: s.Written.Name})
		p.RecheckIn(afterOwning)
	case s.Owner.pool():
		decideRotation(s, p)
	default:
		decideRefresh(s, p)
	}
}

// needsOwner reports whether the data Secret lacks its owner reference to this KubeadmConfig. Objects restored from a
// backup have no owners, or references to previous objects or API versions.
func needsOwner(s snapshot) bool {
	if s.Written == nil || s.Written.Name != s.Config.Name || s.Written.Type != clusterv1.ClusterSecretType {
		return false // written by another client
	}
	owner := metav1.GetControllerOf(s.Written)
	return owner == nil || isOwnReference(*owner, s) && (owner.UID != s.Config.UID || owner.APIVersion != bootstrapv1.GroupVersion.String())
}

// decideFirst creates the bootstrap data, or recreates it after it was deleted.
func decideFirst(s snapshot, p *reconciler.Plan) {
	switch {
	case s.takesKeys():
		p.WaitFor(waitCorrection, "Machine %s has the label of control plane Machines, but users may not read the keys of the hosted control plane of Cluster %s; "+
			"create the Machine without label %s", s.Owner.Name, s.Cluster.Name, clusterv1.MachineControlPlaneLabel).For(kindMachine, s.Owner.Name).UntilUserActs()
	case !ptr.Deref(s.Cluster.Status.Initialization.InfrastructureProvisioned, false):
		p.WaitFor(waitInfrastructure, "Waiting for the infrastructure of Cluster %s to be provisioned", s.Cluster.Name).For(clusterv1.ClusterKind, s.Cluster.Name).
			ToChange("status.initialization.infrastructureProvisioned")
	case !s.initialized() && !s.Owner.ControlPlane:
		p.WaitFor(waitControlPlane, "Waiting for the control plane of Cluster %s to be initialized", s.Cluster.Name).For(clusterv1.ClusterKind, s.Cluster.Name).
			ToChange("status.initialization.controlPlaneInitialized")
	case !s.Cluster.Spec.ControlPlaneEndpoint.IsValid():
		p.WaitFor(waitControlPlane, "Waiting for the control plane endpoint of Cluster %s to be set", s.Cluster.Name).For(clusterv1.ClusterKind, s.Cluster.Name).
			ToChange("spec.controlPlaneEndpoint")
	case s.initializes() && !decideLock(s, p):
	case s.RenderInput == nil:
		p.Reads = append(p.Reads, readRenderInput{})
	case s.initializes():
		if canRender(s, p) {
			p.Do(writeData{Name: s.Config.Name})
		}
	default:
		decideData(s, p)
	}
}

// takesKeys reports whether the machine would receive the keys of a hosted control plane even though users may not
// read Secrets. Those keys are on no node, and any user who can create Machines can set the control plane label.
func (s snapshot) takesKeys() bool {
	return s.Owner.ControlPlane && s.Cluster.Spec.ControlPlaneRef.Kind == "HostedControlPlane" && !s.Policy.Management.EditSecrets
}

// decideData plans the steps from complete inputs to the data Secret: choose a token, create its Secret, write the
// data.
func decideData(s snapshot, p *reconciler.Plan) {
	if !canRender(s, p) || !tokenChosen(s, p) || !connected(s, p) {
		return
	}
	if s.token() == "" || refreshToken(s, p) {
		p.Do(writeData{Name: s.Config.Name})
	}
}

// canRender reports whether the bootstrap data can be rendered from the inputs. If not, it adds a wait with the reason.
func canRender(s snapshot, p *reconciler.Plan) bool {
	if !areCertificatesReady(s, p) {
		return false
	}
	if _, err := s.data(); err != nil {
		p.WaitFor(waitCorrection, "%s", upper(err.Error())).For(kindKubeadmConfig, s.Config.Name).UntilUserActs()
		p.RecheckIn(unwatched)
		return false
	}
	if other := adoptionConflict(s); other != "" {
		p.WaitFor(waitCorrection, "Secret %s, the destination of the bootstrap data, %s; rename or delete it", s.Config.Name, other).
			For("Secret", s.Config.Name).UntilUserActs()
		p.RecheckIn(unwatched)
		return false
	}
	return true
}

// tokenChosen reports whether the spec has a token. If not, it chooses one, which is available in the next
// reconciliation.
func tokenChosen(s snapshot, p *reconciler.Plan) bool {
	in := s.Config.Spec.JoinConfiguration.Discovery
	if needsToken(in) {
		p.Do(chooseToken{Why: "spec has none"})
		return false
	}
	if token := s.token(); token != "" && !tokenValid(token) {
		p.WaitFor(waitCorrection, "spec.joinConfiguration.discovery.bootstrapToken.token must have the form abcdef.0123456789abcdef").
			For(kindKubeadmConfig, s.Config.Name).UntilUserActs()
		return false
	}
	return true
}

// connected reports whether the workload cluster can be reached, or no token is needed. If not, it adds a wait.
func connected(s snapshot, p *reconciler.Plan) bool {
	if s.token() == "" || s.Connected {
		return true
	}
	message := fmt.Sprintf("Waiting for the API server of Cluster %s to respond", s.Cluster.Name)
	if s.Problem != "" {
		message += " (" + s.Problem + ")"
	}
	p.WaitFor(waitConnection, "%s", message).For(clusterv1.ClusterKind, s.Cluster.Name).
		ToChange("condition " + clusterv1.ClusterRemoteConnectionProbeCondition)
	return false
}

// decideRefresh extends the token of a Machine until the Machine has a Node.
func decideRefresh(s snapshot, p *reconciler.Plan) {
	if s.Owner.Joined || s.initializes() || !tokenValid(s.token()) || !connected(s, p) {
		return
	}
	refreshToken(s, p)
}

// refreshToken creates or extends the token of a Machine, and reports whether its state is known.
func refreshToken(s snapshot, p *reconciler.Plan) bool {
	id := tokenID(s.token())
	if s.Token == nil {
		p.Reads = append(p.Reads, readToken{ID: id})
		return false
	}
	need, recheck := tokenRefresh(*s.Token, s.Now, s.TTL)
	switch need {
	case tokenCreate:
		p.Do(createToken{ID: id})
	case tokenExtend:
		p.Do(extendToken{ID: id})
	}
	p.RecheckIn(recheck)
	return true
}

// decideRotation maintains bootstrap data with a fresh token for the next machine of a pool.
func decideRotation(s snapshot, p *reconciler.Plan) {
	switch {
	case s.token() == "" && !needsToken(s.Config.Spec.JoinConfiguration.Discovery):
		return // discovery by file uses no token
	case s.RenderInput == nil:
		p.Reads = append(p.Reads, readRenderInput{})
		return
	case !dataHasToken(s):
		decideData(s, p) // the token was chosen, but the data does not contain it yet
		return
	case !connected(s, p):
		return
	case s.Token == nil:
		p.Reads = append(p.Reads, readToken{ID: tokenID(s.token())})
		return
	}
	need, again := tokenRotate(*s.Token, s.Now, s.TTL)
	if need == tokenNothing {
		p.RecheckIn(again)
		return
	}
	if canRender(s, p) {
		why := "the present one has passed half of its lifetime"
		if !s.Token.Found {
			why = reasonTokenMissing
		}
		p.Do(chooseToken{Why: why})
	}
}

// reasonTokenMissing is the reason for replacing a token that is in the bootstrap data but not in the workload cluster.
const reasonTokenMissing = "the present one does not exist in the workload cluster"

func dataHasToken(s snapshot) bool {
	return s.RenderInput.Data != nil && s.token() != "" && bytes.Contains(s.RenderInput.Data.Data[valueKey], []byte(s.token()))
}

// decideDeletion deletes the tokens of an owner that is being deleted. Tokens of an unreachable workload cluster expire
// by their TTL, and a deleted Cluster needs no cleanup.
func decideDeletion(s snapshot, p *reconciler.Plan) {
	if s.Cluster == nil || !s.Cluster.DeletionTimestamp.IsZero() || !s.Connected || s.token() == "" {
		return
	}
	if s.Leftovers == nil {
		p.Reads = append(p.Reads, listLeftoverTokens{})
		return
	}
	for _, secret := range *s.Leftovers {
		p.Do(deleteToken{Name: secret.Name})
	}
}

// adoptionConflict describes why an existing Secret with the name of the data Secret cannot be adopted. A Secret
// without a controller, or left by a previous KubeadmConfig of the same name, can be adopted.
func adoptionConflict(s snapshot) string {
	secret := s.RenderInput.Data
	if secret == nil {
		return ""
	}
	if secret.Type != clusterv1.ClusterSecretType {
		return fmt.Sprintf("has type %s instead of %s", secret.Type, clusterv1.ClusterSecretType)
	}
	if owner := metav1.GetControllerOf(secret); owner != nil && !isOwnReference(*owner, s) {
		return fmt.Sprintf("belongs to %s %s", owner.Kind, owner.Name)
	}
	return ""
}

// isOwnReference reports whether the reference is to this KubeadmConfig or a previous one with the same name.
func isOwnReference(ref metav1.OwnerReference, s snapshot) bool {
	return ref.Kind == kindKubeadmConfig && ref.Name == s.Config.Name
}
