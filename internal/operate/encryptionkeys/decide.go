package encryptionkeys

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/controlplane/componentconfig"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/operate/progress"
)

// Reasons of faults.
const (
	// reasonUnsupported is the reason when the cluster has no encryption keys managed by this package; Invalid.
	reasonUnsupported = "EncryptionRotationUnsupported"
	// reasonNotNow is the reason when the rotation cannot start or continue in the current state; Invalid.
	reasonNotNow = "EncryptionRotationNotPossibleNow"
	// reasonNotRewritten is the reason when objects could not be rewritten; Invalid if objects are rejected, Transient
	// if the cluster fails.
	reasonNotRewritten = "ObjectsNotRewritten"
	// reasonUnreachable is the reason when the workload cluster is unreachable; Unreachable.
	reasonUnreachable = "WorkloadClusterUnreachable"
)

// snapshot is the state of a cluster whose encryption keys are rotated, the input of [decide]. Rotator.read fills it
// in.
type snapshot struct {
	Cluster *clusterv1.Cluster
	Plane   *hostedv1.HostedControlPlane
	// Secret has the keys; nil if it does not exist.
	Secret *corev1.Secret
}

// action is the next action.
type action string

// The actions. None means only a wait.
const (
	actionNone    action = ""
	actionRewrite action = "rewrite"
	actionDone    action = "done"
)

// step is the next step.
type step struct {
	Action action
	// Wait is the reason for waiting.
	Wait string
}

// UnderWay reports whether a rotation is in progress.
func (s snapshot) UnderWay() bool {
	if s.Secret == nil {
		return false
	}
	keys, err := componentconfig.ParseKeys(s.Secret.Data)
	return err == nil && (keys.Former != nil || keys.Rewritten != "" && keys.Fingerprint() != s.Plane.Status.EncryptionKeys)
}

// decide returns the next step of a rotation of encryption keys; Done if none is in progress. [Rotator.Run] calls it
// repeatedly. The error describes a problem that a user must solve first.
func decide(s snapshot) (step, error) {
	if err := checkSupported(s); err != nil {
		return step{}, err
	}
	keys, err := componentconfig.ParseKeys(s.Secret.Data)
	if err != nil {
		return step{}, fault.New(fault.Invalid, reasonNotNow, "Secret %s cannot be used: %v; restore it from a backup", s.Secret.Name, err)
	}
	c := condition.Set(s.Plane.Status.Conditions).Get(hostedv1.EncryptionKeysAvailableCondition)
	if c != nil && c.Status == metav1.ConditionFalse {
		return step{}, fault.New(fault.Invalid, reasonNotNow, "%s", strings.TrimSpace(c.Message))
	}
	switch {
	case keys.Fingerprint() != s.Plane.Status.EncryptionKeys:
		return step{Wait: fmt.Sprintf("HostedControlPlane %s restarts with the keys of Secret %s", s.Plane.Name, s.Secret.Name)}, nil
	case keys.Former != nil:
		return step{Action: actionRewrite}, nil
	}
	return step{Action: actionDone}, nil
}

// checkSupported returns an error if there are no keys to rotate.
func checkSupported(s snapshot) error {
	simulated := s.Plane.Spec.Backend.Simulated != nil
	switch {
	case simulated:
		return fault.New(fault.Invalid, reasonUnsupported, "the control plane of cluster %q is simulated and does not encrypt data", s.Cluster.Name)
	case s.Secret == nil && s.Plane.Spec.Security.Effective().Encryption == nil:
		return fault.New(fault.Invalid, reasonUnsupported,
			"the data of cluster %q is not encrypted: set spec.encryption of HostedControlPlane %s, which creates keys, and rotate them later", s.Cluster.Name, s.Plane.Name)
	case s.Secret != nil && s.Plane.Spec.Security.Effective().Encryption == nil && s.Plane.Status.EncryptionKeys == "":
		return fault.New(fault.Invalid, reasonUnsupported,
			"the data of cluster %q is not and was not encrypted, although Secret %s exists: set spec.encryption of HostedControlPlane %s, and rotate its keys later", s.Cluster.Name, s.Secret.Name, s.Plane.Name)
	case !s.Cluster.DeletionTimestamp.IsZero() || !s.Plane.DeletionTimestamp.IsZero():
		return fault.New(fault.Invalid, reasonNotNow, "cluster %q is being deleted", s.Cluster.Name)
	case ptr.Deref(s.Cluster.Spec.Paused, false):
		return fault.New(fault.Invalid, reasonNotNow, "cluster %q is paused, so its control plane does not restart: remove spec.paused", s.Cluster.Name)
	case isPaused(s.Plane):
		return fault.New(fault.Invalid, reasonNotNow, "HostedControlPlane %s is paused, so it does not restart: remove annotation %s", s.Plane.Name, clusterv1.PausedAnnotation)
	case s.Secret == nil:
		return fault.New(fault.Invalid, reasonNotNow, "Secret %s does not exist: the controller creates it unless it was lost; see condition %s of HostedControlPlane %s",
			secretName(s.Cluster.Name), hostedv1.EncryptionKeysAvailableCondition, s.Plane.Name)
	}
	return nil
}

func isPaused(p *hostedv1.HostedControlPlane) bool {
	_, paused := p.Annotations[clusterv1.PausedAnnotation]
	return paused
}

// secretName returns the name of the Secret with the keys of a cluster.
func secretName(cluster string) string { return secrets.Encryption.SecretName(cluster) }

// Plan is the plan and the progress of a rotation, which `slipway rotate encryption` shows, also as JSON. It contains
// no keys.
type Plan struct {
	Cluster string `json:"cluster"`
	// Keys is the fingerprint of the keys in effect.
	Keys string `json:"keys,omitempty"`
	// Steps are in order of execution.
	Steps []progress.Phase `json:"steps"`
	// UnderWay means that the rotation is in progress.
	UnderWay bool `json:"underWay"`
	// Problem is a problem to solve before the rotation can start or continue; empty if there is none.
	Problem string `json:"problem,omitempty"`
}

// NeedsConfirmation reports whether an execution of the plan would start a rotation. It implements term.Plan, as Lines
// does.
func (p Plan) NeedsConfirmation() bool { return !p.UnderWay && p.Problem == "" }

// planOf returns the plan that [Rotator.Prepare] displays before the rotation starts or continues.
func planOf(s snapshot) Plan {
	p := Plan{Cluster: s.Cluster.Name, Keys: s.Plane.Status.EncryptionKeys, UnderWay: s.UnderWay()}
	step, err := decide(s)
	if err != nil {
		p.Problem = fault.UserMessage(err)
	}
	at := -1
	if p.UnderWay {
		keys, _ := componentconfig.ParseKeys(s.Secret.Data)
		switch {
		case keys.Former == nil:
			at = 2
		case step.Action == actionRewrite:
			at = 1
		default:
			at = 0
		}
	}
	p.Steps = progress.Phases(at,
		"encrypt with new keys, and still read with the old keys: the control plane restarts in place",
		"rewrite all stored objects",
		"remove the old keys: the control plane restarts in place")
	return p
}

// Lines formats the plan for display. `slipway rotate encryption` prints them before the confirmation.
func (p Plan) Lines() []string {
	out := []string{fmt.Sprintf("Rotation of the keys that encrypt the etcd data of cluster %s:", p.Cluster)}
	out = append(out, progress.PhaseLines(p.Steps)...)
	if p.Problem != "" {
		out = append(out, "The rotation cannot start or continue: "+p.Problem)
	}
	return append(out, fmt.Sprintf("Etcd snapshots from before step 3 need the old keys: retain a backup of Secret %s as long as you retain the snapshots.", secretName(p.Cluster)))
}
