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
)

// Reasons of faults.
const (
	// ReasonUnsupported is the reason when the cluster has no encryption keys managed by this package; Invalid.
	ReasonUnsupported = "EncryptionRotationUnsupported"
	// ReasonNotNow is the reason when the rotation cannot start or continue in the current state; Invalid.
	ReasonNotNow = "EncryptionRotationNotPossibleNow"
	// ReasonNotRewritten is the reason when objects could not be rewritten; Invalid if objects are rejected, Transient
	// if the cluster fails.
	ReasonNotRewritten = "ObjectsNotRewritten"
	// ReasonUnreachable is the reason when the workload cluster is unreachable; Unreachable.
	ReasonUnreachable = "WorkloadClusterUnreachable"
	// ReasonTimeout is the reason when the wait timed out; Transient.
	ReasonTimeout = "Timeout"
)

// Snapshot is the input of a decision.
type Snapshot struct {
	Cluster *clusterv1.Cluster
	Plane   *hostedv1.HostedControlPlane
	// Secret has the keys; nil if it does not exist.
	Secret *corev1.Secret
}

// Action is the next action.
type Action string

// The actions. None means only a wait.
const (
	None    Action = ""
	Rewrite Action = "rewrite"
	Done    Action = "done"
)

// Step is the next step.
type Step struct {
	Action Action
	// Wait is the reason for waiting.
	Wait string
}

// UnderWay reports whether a rotation is in progress.
func (s Snapshot) UnderWay() bool {
	if s.Secret == nil {
		return false
	}
	keys, err := componentconfig.ParseKeys(s.Secret.Data)
	return err == nil && (keys.Former != nil || keys.Rewritten != "" && keys.Fingerprint() != s.Plane.Status.EncryptionKeys)
}

// Decide returns the next step; Done if no rotation is in progress. The error describes a problem that a user must
// solve first.
func Decide(s Snapshot) (Step, error) {
	if err := checkSupported(s); err != nil {
		return Step{}, err
	}
	keys, err := componentconfig.ParseKeys(s.Secret.Data)
	if err != nil {
		return Step{}, fault.New(fault.Invalid, ReasonNotNow, "Secret %s cannot be used: %v; restore it from a backup", s.Secret.Name, err)
	}
	c := condition.Set(s.Plane.Status.Conditions).Get(hostedv1.EncryptionKeysAvailableCondition)
	if c != nil && c.Status == metav1.ConditionFalse {
		return Step{}, fault.New(fault.Invalid, ReasonNotNow, "%s", strings.TrimSpace(c.Message))
	}
	switch {
	case keys.Fingerprint() != s.Plane.Status.EncryptionKeys:
		return Step{Wait: fmt.Sprintf("HostedControlPlane %s restarts with the keys of Secret %s", s.Plane.Name, s.Secret.Name)}, nil
	case keys.Former != nil:
		return Step{Action: Rewrite}, nil
	}
	return Step{Action: Done}, nil
}

// checkSupported returns an error if there are no keys to rotate.
func checkSupported(s Snapshot) error {
	simulated := s.Plane.Spec.Backend.Simulated != nil
	switch {
	case simulated:
		return fault.New(fault.Invalid, ReasonUnsupported, "the control plane of cluster %q is simulated, and encrypts nothing", s.Cluster.Name)
	case s.Secret == nil && s.Plane.Spec.Security.Effective().Encryption == nil:
		return fault.New(fault.Invalid, ReasonUnsupported,
			"nothing of cluster %q is encrypted: set spec.encryption of HostedControlPlane %s, which creates keys, and rotate them later", s.Cluster.Name, s.Plane.Name)
	case s.Secret != nil && s.Plane.Spec.Security.Effective().Encryption == nil && s.Plane.Status.EncryptionKeys == "":
		return fault.New(fault.Invalid, ReasonUnsupported,
			"nothing of cluster %q is or was encrypted, although Secret %s is there: set spec.encryption of HostedControlPlane %s, and rotate its keys later", s.Cluster.Name, s.Secret.Name, s.Plane.Name)
	case !s.Cluster.DeletionTimestamp.IsZero() || !s.Plane.DeletionTimestamp.IsZero():
		return fault.New(fault.Invalid, ReasonNotNow, "cluster %q is being deleted", s.Cluster.Name)
	case ptr.Deref(s.Cluster.Spec.Paused, false):
		return fault.New(fault.Invalid, ReasonNotNow, "cluster %q is paused, so that its control plane does not restart: remove spec.paused", s.Cluster.Name)
	case isPaused(s.Plane):
		return fault.New(fault.Invalid, ReasonNotNow, "HostedControlPlane %s is paused, so that it does not restart: remove annotation %s", s.Plane.Name, clusterv1.PausedAnnotation)
	case s.Secret == nil:
		return fault.New(fault.Invalid, ReasonNotNow, "Secret %s does not exist: its controller creates it, unless it was lost; see condition %s of HostedControlPlane %s",
			SecretName(s.Cluster.Name), hostedv1.EncryptionKeysAvailableCondition, s.Plane.Name)
	}
	return nil
}

func isPaused(p *hostedv1.HostedControlPlane) bool {
	_, paused := p.Annotations[clusterv1.PausedAnnotation]
	return paused
}

// SecretName returns the name of the Secret with the keys of a cluster.
func SecretName(cluster string) string { return secrets.Encryption.SecretName(cluster) }

// Plan is the plan and the progress of a rotation. It contains no keys.
type Plan struct {
	Cluster string `json:"cluster"`
	// Keys is the fingerprint of the keys in effect.
	Keys string `json:"keys,omitempty"`
	// Steps are in order of execution.
	Steps []PlanStep `json:"steps"`
	// Begun means that the rotation is in progress.
	Begun bool `json:"underWay"`
	// Problem is a problem to solve before the rotation can start or continue; empty if there is none.
	Problem string `json:"problem,omitempty"`
}

// PlanStep is a step of a plan.
type PlanStep struct {
	Name string `json:"name"`
	// State is "done", "under way" or "to do".
	State string `json:"state"`
}

func planOf(s Snapshot) Plan {
	p := Plan{Cluster: s.Cluster.Name, Keys: s.Plane.Status.EncryptionKeys, Begun: s.UnderWay()}
	step, err := Decide(s)
	if err != nil {
		p.Problem = fault.UserMessage(err)
	}
	at := -1
	if p.Begun {
		keys, _ := componentconfig.ParseKeys(s.Secret.Data)
		switch {
		case keys.Former == nil:
			at = 2
		case step.Action == Rewrite:
			at = 1
		default:
			at = 0
		}
	}
	for i, name := range []string{
		"encrypt with new keys, and read with the old ones too: the control plane restarts in place",
		"write everything once more that is stored",
		"forget the old keys: the control plane restarts in place",
	} {
		state := "to do"
		if i < at {
			state = "done"
		} else if i == at {
			state = "under way"
		}
		p.Steps = append(p.Steps, PlanStep{Name: name, State: state})
	}
	return p
}

// Lines formats the plan for display.
func (p Plan) Lines() []string {
	out := []string{fmt.Sprintf("Rotation of the keys that encrypt what cluster %s has in etcd:", p.Cluster)}
	for i, s := range p.Steps {
		out = append(out, fmt.Sprintf("  %d. %s [%s]", i+1, s.Name, s.State))
	}
	if p.Problem != "" {
		out = append(out, "Before it can begin or continue: "+p.Problem)
	}
	return append(out, fmt.Sprintf("Snapshots of etcd from before step 3 need the old keys: keep a backup of Secret %s for as long as you keep them.", SecretName(p.Cluster)))
}
