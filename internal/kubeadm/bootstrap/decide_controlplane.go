package bootstrap

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// decideLock reports whether this Machine may initialize the control plane. [decide] calls it for control plane
// Machines of a Cluster that is not initialized; this file has the parts of the decision that only such Machines need.
// After taking the lock, initialization waits for the next reconciliation, which verifies that the Machine holds it.
func decideLock(s snapshot, p *reconciler.Plan) bool {
	switch {
	case s.Lock == nil:
		p.Reads = append(p.Reads, readLock{})
	case !s.Lock.Found():
		p.Do(takeLock{Cluster: s.Cluster.Name, Machine: s.Owner.Name})
		p.RecheckIn(afterCreating)
	case s.Lock.Holder == s.Owner.Name:
		return true
	case s.Lock.Holder == "":
		p.WaitFor(waitCorrection, "ConfigMap %s does not name the Machine that initializes the control plane; delete it", initLockName(s.Cluster.Name)).
			For("ConfigMap", initLockName(s.Cluster.Name)).UntilUserActs()
		p.RecheckIn(whileLocked)
	case s.Lock.HolderGone:
		p.Do(releaseLock{Cluster: s.Cluster.Name, Why: fmt.Sprintf("Machine %s does not exist", s.Lock.Holder)})
		p.RecheckIn(afterCreating)
	default:
		p.WaitFor(waitControlPlane, "Waiting for Machine %s to initialize the control plane of Cluster %s", s.Lock.Holder, s.Cluster.Name).
			For(clusterv1.ClusterKind, s.Cluster.Name).ToChange("status.initialization.controlPlaneInitialized")
		p.RecheckIn(whileLocked)
	}
	return false
}

// decideRelease releases the lock once the control plane is initialized, independent of the Machine that held it.
// [decide] calls it before the steps for the bootstrap data.
func decideRelease(s snapshot, p *reconciler.Plan) {
	switch {
	case !s.Owner.ControlPlane || !s.initialized():
	case s.Lock == nil:
		p.Reads = append(p.Reads, readLock{})
	case s.Lock.Found():
		p.Do(releaseLock{Cluster: s.Cluster.Name, Why: "its control plane is initialized"})
	}
}

// areCertificatesReady reports whether the required certificates exist and are valid. For a cluster without a control
// plane object they are created before the first machine; in all other cases the controller waits for them. [canRender]
// calls it before the bootstrap data of a control plane Machine is rendered.
func areCertificatesReady(s snapshot, p *reconciler.Plan) bool {
	if !s.Owner.ControlPlane {
		return isCAReady(s, p)
	}
	// Once data exists, a machine may have started with it and would not trust a newly generated CA.
	written := s.hasData() || s.RenderInput.Data != nil && adoptionConflict(s) == ""
	generate := s.managed() || s.initializes() && !written
	state := secrets.Evaluate(secrets.EvaluateInput{Now: s.Now, Cluster: s.Cluster.Name, Required: s.required(), Found: s.RenderInput.Authorities, Generate: generate})
	switch {
	case len(state.Problems) > 0:
		problem := state.Problems[0]
		p.WaitFor(waitCertificates, "%s", problem.Text).For("Secret", problem.Secret).UntilUserActs()
		p.RecheckIn(unwatched)
	case len(state.Create) > 0 && s.managed():
		ref, name := s.Cluster.Spec.ControlPlaneRef, state.Create[0].SecretName(s.Cluster.Name)
		p.WaitFor(waitCertificates, "Waiting for %s %s to create Secret %s", ref.Kind, ref.Name, name).For("Secret", name).ToChange("")
		p.RecheckIn(unwatched)
	case len(state.Create) > 0:
		for _, purpose := range state.Create {
			p.Do(createAuthority{Purpose: purpose, Cluster: s.Cluster.Name})
		}
		p.RecheckIn(afterCreating)
	}
	return state.Complete()
}

// isCAReady reports whether a CA exists with which a worker can verify the cluster. Workers do not receive its key.
func isCAReady(s snapshot, p *reconciler.Plan) bool {
	if _, err := caCertHashes(s.RenderInput.CA); err != nil {
		name := secrets.CA.SecretName(s.Cluster.Name)
		p.WaitFor(waitCertificates, "Waiting for Secret %s with the certificate of the cluster's CA in key %s", name, caKey).
			For("Secret", name).ToChange("data")
		p.RecheckIn(unwatched)
		return false
	}
	return true
}

// required returns the Secrets that a control plane machine needs. For a joining machine, the component configuration
// is in the machine's own KubeadmConfig only if a KubeadmControlPlane wrote it; otherwise it is only stored in the
// workload cluster.
func (s snapshot) required() []secrets.Requirement {
	if s.initializes() || s.Cluster.Spec.ControlPlaneRef.Kind == "KubeadmControlPlane" {
		return secrets.SignedByKubeadm(s.Config.Spec)
	}
	return secrets.Required(s.Config.Spec.ClusterConfiguration)
}

// managed reports whether a control plane object provides the certificates.
func (s snapshot) managed() bool { return s.Cluster.Spec.ControlPlaneRef.IsDefined() }

// authorityOwner returns the owner for the certificate Secrets that this controller creates. act calls it.
func (s snapshot) authorityOwner() secrets.Owner {
	return secrets.Owner{Ref: *metav1.NewControllerRef(s.Config, bootstrapv1.GroupVersion.WithKind(kindKubeadmConfig))}
}
